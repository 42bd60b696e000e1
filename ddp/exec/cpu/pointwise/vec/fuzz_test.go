package vec

import (
	"math"
	"testing"

	"ebtrain/collective/subnormal"
	"ebtrain/ddp/exec/cpu/array/arraytest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// FuzzFloat32 holds every loop for float32 to the one in Go, on blocks of any
// length between guard words, in place of an operand as well.
func FuzzFloat32(f *testing.F) {
	arraytest.Seeds(f)
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		k := int(n % 300)
		all := arraytest.Floats(raw, 3*k+1)
		x, y, z, s := all[:k], all[k:2*k], all[2*k:3*k], all[3*k]
		arraytest.EitherWay(t, func() {
			if k > 0 {
				fuzzUnary(t, x, s)
				fuzzBinary(t, x, y, s)
			}
			holds(t, "select", x, func(d []float32) { selectFloat32()(d, d, y, z) }, func(d []float32) { selectVVV(d, d, y, z) })
		})
	})
}

// holds runs a loop and its twin on copies of d, and wants the same bits.
func holds(t *testing.T, name string, d []float32, loop, twin func(d []float32)) {
	t.Helper()
	got, check := arraytest.Guarded(d)
	loop(got)
	if err := check(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want, _ := arraytest.Guarded(d)
	twin(want)
	if i, ok := arraytest.SameBits(got, want); !ok {
		t.Fatalf("%s of %v: got %v (%08x), want %v (%08x)", name, d[i], got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
	}
}

func fuzzUnary(t *testing.T, x []float32, a float32) {
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		loop := unaryFloat32(fn)
		switch fn {
		case graph.Exp, graph.Log, graph.Elu, graph.EluD, graph.EluDD, graph.Sigmoid, graph.Tanh, graph.Softplus:
			d, check := arraytest.Guarded(x)
			loop(d, d, 1)
			if err := check(); err != nil {
				t.Fatalf("%v: %v", fn, err)
			}
			zeros := subnormal.Zeros()
			subnormal.Counting(false, func() { checkExponential(t, fn, d, x, zeros) })
		default:
			holds(t, fn.String(), x, func(d []float32) { loop(d, d, a) }, func(d []float32) { unaryOf[float32](fn)(d, d, a) })
		}
	}
}

// checkExponential wants d to be within maxUlps of f(x). If subnormal numbers count as zeros,
// they do so within a function as well, half of whose result may be one: then d may be off by
// less than twice the least normal number.
func checkExponential(t *testing.T, fn graph.UnaryFn, d, x []float32, zeros bool) {
	t.Helper()
	const normal = 0x1p-126
	for i, v := range x {
		if zeros && v > -normal && v < normal {
			v = 0
		}
		want := float32(plan.EvalUnary(fn, 1, float64(v)))
		if flushed := zeros && math.Abs(float64(d[i])-float64(want)) < 2*normal; !flushed && ulps(d[i], want) > maxUlps {
			t.Fatalf("%v(%v) = %v, want %v", fn, x[i], d[i], want)
		}
	}
}

func fuzzBinary(t *testing.T, x, y []float32, s float32) {
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		loop, twin := binaryFloat32(fn), binaryOf[float32](fn)
		holds(t, fn.String()+" of arrays", x, func(d []float32) { loop.VV(d, d, y) }, func(d []float32) { twin.VV(d, d, y) })
		holds(t, fn.String()+" of array and number", x, func(d []float32) { loop.VS(d, d, s) }, func(d []float32) { twin.VS(d, d, s) })
		holds(t, fn.String()+" of number and array", x, func(d []float32) { loop.SV(d, d, s) }, func(d []float32) { twin.SV(d, d, s) })
	}
}

// FuzzSums holds the sums of float32 to those in Go. Those of columns have the
// same order, and a square of a float32 is exact, so they have the same bits.
func FuzzSums(f *testing.F) {
	arraytest.Seeds(f)
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		cols, rows := 1+int(n%200), int(n/200)%6
		x := arraytest.Floats(raw, cols*rows)
		arraytest.EitherWay(t, func() { fuzzSums(t, cols, x) })
	})
}

// fuzzSums is of rows of so many columns.
func fuzzSums(t *testing.T, cols int, x []float32) {
	for _, c := range []struct {
		name       string
		loop, twin Sums[float32, float64]
	}{
		{"sums", sumsFloat32(), sumsOf[float32, float64]()},
		{"squares", squaresFloat32(), squaresOf[float32, float64]()},
	} {
		start := make([]float64, cols)
		got, check := arraytest.Guarded(start)
		c.loop.Columns(got, x)
		if err := check(); err != nil {
			t.Fatalf("%s of %d columns: %v", c.name, cols, err)
		}
		c.twin.Columns(start, x)
		for i, want := range start {
			if got[i] != want && (got[i] == got[i] || want == want) {
				t.Fatalf("%s of %d rows of %d columns: column %d is %v, want %v", c.name, len(x)/cols, cols, i, got[i], want)
			}
		}
		size := 0.0
		for _, v := range x {
			size += max(math.Abs(float64(v)), float64(v)*float64(v))
		}
		if got, want := c.loop.All(x), c.twin.All(x); got != want && (got == got || want == want) && !(math.Abs(got-want) <= size*float64(len(x))*0x1p-52) {
			t.Fatalf("%s of %d: %v, want %v", c.name, len(x), got, want)
		}
	}
}
