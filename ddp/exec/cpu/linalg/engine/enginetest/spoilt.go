package enginetest

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// spoilt holds the first engine to what it is to make of an operand with an element that is
// not a number: no result with a term of it is one. Others may be none either: by fewer
// multiplications, results share what is added up.
func (s *suite) spoilt(t *testing.T, r reference, prepare func(engine.Engine) (engine.Kernel, error)) {
	operands := [2][]float32{random(1, r.a), random(2, r.b)}
	at := [2]int{r.a / 3, r.b / 2}
	of := [2][]bool{make([]bool, r.dst), make([]bool, r.dst)} // results with a term of it
	r.walk(func(d, i, j int) {
		of[0][d] = of[0][d] || i == at[0]
		of[1][d] = of[1][d] || j == at[1]
	})
	for which, k := range at {
		x := operands
		x[which] = append([]float32{}, x[which]...)
		x[which][k] = float32(math.NaN())
		if err := s.do(func() error {
			return spreads(of[which], x, func() (engine.Kernel, error) { return prepare(s.engines[0]) })
		}); err != nil {
			t.Errorf("operand %d is NaN at %d: %v", which, k, err)
		}
	}
}

// spreads says which result of operands x is a number, and should not be.
func spreads(of []bool, x [2][]float32, prepare func() (engine.Kernel, error)) error {
	kernel, err := prepare()
	if err != nil {
		return err
	}
	got, err := runGuarded(kernel, len(of), x[0], x[1], 0, poisons[1])
	if err != nil {
		return err
	}
	for d, v := range got {
		if of[d] && v == v {
			return fmt.Errorf("element %d is %v", d, v)
		}
	}
	return kernel.Close()
}
