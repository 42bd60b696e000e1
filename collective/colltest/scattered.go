package colltest

import (
	"bytes"
	"fmt"
	"testing"

	"ebtrain/collective"
)

// scattered demands that a ReduceScatter leaves a rank the bits that an AllReduce of
// the same numbers does, and that these do not depend on how long the vector is. It is
// for implementations that add in a fixed order.
func (f Factory) scattered(t *testing.T) {
	for _, n := range f.quickSizes() {
		comms := f.group(t, n)
		for _, d := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
			for _, part := range []int{3, 640, 20000 / n} { // small, and beyond what is summed in one go
				for _, op := range []collective.Op{collective.Sum, collective.Mean} {
					each(comms, func(c collective.Comm) error { return f.sameSums(c, d, op, part) }).ok(t)
					if t.Failed() {
						t.Fatalf("%s of %s, parts of %d elements on %d ranks", op, d, part, n)
					}
				}
			}
		}
	}
}

// sameSums reduces parts of so many elements: to all, to each its own, and part by part.
func (f Factory) sameSums(c collective.Comm, d collective.DType, op collective.Op, part int) error {
	values := make([]float64, part*c.Size())
	for i := range values {
		values[i] = real(c.Size(), c.Rank(), i)
	}
	reduced := func(kind collective.Kind, values []float64) ([]byte, error) {
		b, err := f.Memory(c, vectorBytes(d, len(values)))
		if err != nil {
			return nil, err
		}
		v := newVector(b, d, values)
		if err := do(c, collective.Request{Kind: kind, Op: op, Vec: v.vec}); err != nil {
			return nil, err
		}
		return v.bytes()
	}
	all, err := reduced(collective.AllReduce, values)
	if err != nil {
		return err
	}
	mine, err := reduced(collective.ReduceScatter, values)
	if err != nil {
		return err
	}
	size := part * d.Size()
	at := c.Rank() * size
	if !bytes.Equal(mine[at:][:size], all[at:][:size]) {
		return fmt.Errorf("what is scattered has other bits than what all have")
	}
	for q := range c.Size() {
		alone, err := reduced(collective.AllReduce, values[q*part:][:part])
		if err != nil {
			return err
		}
		if !bytes.Equal(alone, all[q*size:][:size]) {
			return fmt.Errorf("part %d reduced alone has other bits than in the whole vector", q)
		}
	}
	return nil
}
