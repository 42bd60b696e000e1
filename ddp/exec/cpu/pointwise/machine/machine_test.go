package machine

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array/arraytest"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
)

func TestHandlers(t *testing.T) {
	if !Available() {
		t.Skip("needs AVX2 with FMA: without it groups run in the loops of package vec, which its tests cover")
	}
	for _, s := range sets() {
		for op, h := range s.handlers {
			if h == 0 {
				t.Errorf("%s: opcode %d has no handler", s.name, op)
			}
		}
	}
}

// twin is what an instruction does to a number of the accumulator.
type twin func(acc, operand float32) float32

func twins(num float32) map[opcode]twin {
	truth := func(b bool) float32 {
		if b {
			return 1
		}
		return 0
	}
	either := map[opcode]twin{
		opLoad:    func(_, x float32) float32 { return x },
		opAdd:     func(a, x float32) float32 { return a + x },
		opSub:     func(a, x float32) float32 { return a - x },
		opRsub:    func(a, x float32) float32 { return x - a },
		opMul:     func(a, x float32) float32 { return a * x },
		opDiv:     func(a, x float32) float32 { return a / x },
		opRdiv:    func(a, x float32) float32 { return x / a },
		opMax:     func(a, x float32) float32 { return max(a, x) },
		opMin:     func(a, x float32) float32 { return min(a, x) },
		opGreater: func(a, x float32) float32 { return truth(a > x) },
		opLess:    func(a, x float32) float32 { return truth(a < x) },
		opEqual:   func(a, x float32) float32 { return truth(a == x) },
	}
	all := map[opcode]twin{
		opNeg:    func(a, _ float32) float32 { return -a },
		opAbs:    func(a, _ float32) float32 { return math.Float32frombits(math.Float32bits(a) &^ (1 << 31)) },
		opSqrt:   func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) },
		opSquare: func(a, _ float32) float32 { return a * a },
		opLeakyRelu: func(a, x float32) float32 {
			if a > 0 {
				return a
			}
			return a * x
		},
		opLeakyStep: func(a, x float32) float32 {
			if a > 0 {
				return 1
			}
			return x
		},
		opSlope: func(a, x float32) float32 {
			if x > 0 {
				return a
			}
			return a * num
		},
	}
	for op, f := range either {
		all[op], all[op+1] = f, f
	}
	tab := vec.Float32()
	for fn, op := range exponentials {
		loop := tab.Unary(fn)
		all[op] = func(a, x float32) float32 {
			d := []float32{a}
			loop(d, d, x)
			return d[0]
		}
	}
	return all
}

// parametric are functions of the accumulator and a parameter.
var parametric = []opcode{opLeakyRelu, opLeakyStep, opElu, opEluD, opEluDD}

// FuzzHandlers holds each instruction to its twin: on the first number of an
// operand or on all of them, over some strips between guard words.
func FuzzHandlers(f *testing.F) {
	if !Available() {
		f.Skip("no machine")
	}
	arraytest.Seeds(f)
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		for _, s := range sets() {
			arraytest.EitherWay(t, func() { s.fuzz(t, n, raw) })
		}
	})
}

func (s *set) fuzz(t *testing.T, n uint16, raw []byte) {
	strips := 1 + int(n%4)
	size := strips * Width
	all := arraytest.Floats(raw, 2*size+1)
	x, y, num := all[:size], all[size:2*size], all[2*size]
	twins := twins(num)
	for op := opLoad; op < numOpcodes; op++ {
		if op == opSum || op == opSumSquares {
			s.fuzzSum(t, op, x)
			continue
		}
		counter := InArray
		if single := op > opLoad && op < opLeakyRelu && (op-opLoad)%2 == 1; single || slices.Contains(parametric, op) {
			counter = Still
		}
		d, check := arraytest.Guarded(x)
		p := s.link([]Instr{Prefetch(0, 64), {op: opLoad}, {op: op, num: num}, {op: opStore}, {op: opNext}})
		p.Operand(0, unsafe.Pointer(&y[0]), InArray)
		p.Operand(1, unsafe.Pointer(&d[0]), InBlock)
		p.Operand(2, unsafe.Pointer(&y[0]), counter)
		p.Operand(3, unsafe.Pointer(&d[0]), InArray)
		p.Run(0, strips)
		if err := check(); err != nil {
			t.Fatalf("%s: opcode %d: %v", s.name, op, err)
		}
		want := make([]float32, size)
		for i := range want {
			operand := y[i]
			if counter == Still {
				operand = y[0]
			}
			want[i] = twins[op](x[i], operand)
		}
		if i, ok := arraytest.SameBits(d, want); !ok {
			t.Fatalf("%s: opcode %d of %v and %v, number %v: got %v (%08x), want %v (%08x)", s.name, op, x[i], y[i], num, d[i], math.Float32bits(d[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// fuzzSum adds x, or its squares, to sums of which each number of a block has one.
func (s *set) fuzzSum(t *testing.T, op opcode, x []float32) {
	want := make([]float64, len(x))
	for i := range want {
		want[i] = float64(i)
	}
	acc, check := arraytest.Guarded(want)
	p := s.link([]Instr{{op: opLoad}, {op: op}, {op: opNext}})
	p.Operand(0, unsafe.Pointer(&x[0]), InArray)
	p.Operand(1, unsafe.Pointer(&acc[0]), InSums)
	p.Run(0, len(x)/Width)
	if err := check(); err != nil {
		t.Fatalf("%s: opcode %d: %v", s.name, op, err)
	}
	for i, v := range x {
		d := float64(v)
		if op == opSumSquares {
			d *= d // exact
		}
		if want[i] += d; acc[i] != want[i] && (acc[i] == acc[i] || want[i] == want[i]) {
			t.Fatalf("%s: opcode %d: sum %d is %v, want %v", s.name, op, i, acc[i], want[i])
		}
	}
}

// TestSameHeaders holds the copies of what two packages include to each other.
func TestSameHeaders(t *testing.T) {
	for _, name := range []string{"exp_avx2_amd64.h", "log_avx2_amd64.h"} {
		here, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadFile(filepath.Join("..", "vec", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(here, there) {
			t.Errorf("%s is not as in package vec: copy the one that was meant", name)
		}
	}
}
