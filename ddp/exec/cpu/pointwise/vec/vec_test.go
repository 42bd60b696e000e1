package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec/cpu/array/arraytest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// hard are the values that loops get wrong, and many ordinary ones, in any order; the
// length is no multiple of a vector's.
func hard(sub uint16) []float32 {
	inf := math.Inf(1)
	v := []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, math.NaN(), 0x1p-126, 0x1p-140, -0x1p-149, math.MaxFloat32, -math.MaxFloat32,
		88, 89, -87, -88, -103, -104, -110, 20, -20, 0.5, 1e-7, -1e-7, 9, -9, 1e-4, 17.3, 3e5}
	draws := make([]float64, 230)
	philox.Name{Purpose: philox.Testing, Sub: sub}.Normal(draws)
	for i, d := range draws {
		v = append(v, d*math.Pow(10, float64(i%5-2)))
	}
	out := make([]float32, len(v))
	for i, at := range rand.New(rand.NewPCG(uint64(sub), 0)).Perm(len(v)) {
		out[at] = float32(v[i])
	}
	return out
}

// ulps is how far apart two float32 lie, in units of the last place of want.
// Zeros of different signs are far apart, NaNs are all alike.
func ulps(got, want float32) float64 {
	switch {
	case got == 0 && want == 0 && math.Signbit(float64(got)) != math.Signbit(float64(want)):
		return math.Inf(1)
	case got == want || got != got && want != want:
		return 0
	case math.IsInf(float64(got), 0) || math.IsInf(float64(want), 0) || got != got || want != want:
		return math.Inf(1)
	}
	unit := math.Nextafter32(float32(math.Abs(float64(want))), math.MaxFloat32) - float32(math.Abs(float64(want)))
	return math.Abs(float64(got)-float64(want)) / float64(unit)
}

const maxUlps = 3

func TestUnary32(t *testing.T) {
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		for _, a := range []float32{0.3, -1.5, 3} {
			if !fn.HasParam() && a != 3 {
				continue
			}
			x, d := hard(1), hard(1)
			unaryFloat32(fn)(d, d, a) // in place
			for i := range x {
				want := float32(plan.EvalUnary(fn, float64(a), float64(x[i])))
				if u := ulps(d[i], want); u > maxUlps {
					t.Errorf("%v{%v}(%v) = %v, want %v: %v ulp", fn, a, x[i], d[i], want, u)
				}
			}
		}
	}
}

func TestBinary32(t *testing.T) {
	x, y := hard(1), hard(2)
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		p, d := binaryFloat32(fn), make([]float32, len(x))
		check := func(form string, i int, a, b float32) {
			if want := float32(plan.EvalBinary(fn, float64(a), float64(b))); ulps(d[i], want) > 0 {
				t.Errorf("%v %s (%v, %v) = %v, want %v", fn, form, a, b, d[i], want)
			}
		}
		p.VV(d, x, y)
		for i := range x {
			check("arrays", i, x[i], y[i])
		}
		for _, s := range []float32{2.5, 0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(-1))} {
			p.VS(d, x, s)
			for i := range x {
				check("array, number", i, x[i], s)
			}
			p.SV(d, x, s)
			for i := range x {
				check("number, array", i, s, x[i])
			}
		}
	}
}

func TestSelect32(t *testing.T) {
	c, x, y := hard(1), hard(2), hard(3)
	for i := range c {
		if i%3 == 0 {
			c[i] = 0
		}
	}
	d := make([]float32, len(c))
	selectFloat32()(d, c, x, y)
	for i := range d {
		want := x[i]
		if c[i] == 0 {
			want = y[i]
		}
		if math.Float32bits(d[i]) != math.Float32bits(want) {
			t.Errorf("select(%v, %v, %v) = %v", c[i], x[i], y[i], d[i])
		}
	}
}

// position is a loop over a block: of its operands, to d.
type position func(d, x, y, z []float32)

// positions are all loops that compute each element alone, by name.
func positions() map[string]position {
	all := map[string]position{
		"select": func(d, x, y, z []float32) { selectFloat32()(d, x, y, z) },
	}
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		f := unaryFloat32(fn)
		all[fn.String()] = func(d, x, _, _ []float32) { f(d, x, 0.3) }
	}
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		p := binaryFloat32(fn)
		all[fn.String()+" of arrays"] = func(d, x, y, _ []float32) { p.VV(d, x, y) }
		for _, s := range []float32{0.7, 0, float32(math.Copysign(0, -1))} {
			all[fmt.Sprintf("%s of an array and %v", fn, s)] = func(d, x, _, _ []float32) { p.VS(d, x, s) }
			all[fmt.Sprintf("%s of %v and an array", fn, s)] = func(d, x, _, _ []float32) { p.SV(d, x, s) }
		}
	}
	return all
}

// A number's function has the same bits wherever the number lies, in blocks of
// any length: so a plan may cut values into blocks as it likes. Nothing outside
// the block is written.
func TestPositionOfElements32(t *testing.T) {
	x, y, z := hard(1), hard(2), hard(3)
	for i := 0; i < len(x); i += 3 { // pairs of zeros and NaNs
		y[i] = x[i]
		if i%2 == 0 {
			y[i] = -x[i]
		}
	}
	arraytest.EitherWay(t, func() {
		for name, f := range positions() {
			checkPositions(t, name, f, x, y, z)
		}
	})
}

// checkPositions compares what a loop makes of elements in blocks with what it makes of each alone.
func checkPositions(t *testing.T, name string, f position, x, y, z []float32) {
	t.Helper()
	const guard = 12345
	alone := make([]float32, len(x))
	for i := range x {
		f(alone[i:i+1], x[i:i+1], y[i:i+1], z[i:i+1])
	}
	for n := 1; n <= 70; n++ {
		for at := 0; at+n <= len(x); at++ {
			d := make([]float32, n+1)
			d[n] = guard
			f(d[:n], x[at:at+n], y[at:at+n], z[at:at+n])
			if i, ok := arraytest.SameBits(d[:n], alone[at:at+n]); !ok {
				t.Fatalf("%s of %v, %v: %v (%08x) alone, and %v (%08x) at %d of %d", name, x[at+i], y[at+i], alone[at+i], math.Float32bits(alone[at+i]), d[i], math.Float32bits(d[i]), i, n)
			}
			if d[n] != guard {
				t.Fatalf("%s of %d: wrote behind the block", name, n)
			}
		}
	}
}

func TestSums32(t *testing.T) {
	x := make([]float32, 19*23*8)
	for i := range x {
		x[i] = float32(i*7919%1000) - 500 // whole numbers: sums are exact
	}
	s, squares := sumsFloat32(), squaresFloat32()
	for _, n := range []int{0, 1, 15, 16, 17, 63, 64, 65, 100, 130, len(x)} {
		if got, want := s.All(x[:n]), sum[float32, float64](x[:n]); got != want {
			t.Errorf("sum of %d: %v, want %v", n, got, want)
		}
	}
	for _, cols := range []int{1, 3, 4, 12, 16, 19, 23, 38, 64, 96, 119} {
		got, want := make([]float64, cols), make([]float64, cols)
		s.Columns(got, x)
		sumColumns(want, x)
		s.Columns(got, x[:cols]) // one row more
		sumColumns(want, x[:cols])
		squares.Columns(got, x)
		sumSquareColumns(want, x)
		for c := range got {
			if got[c] != want[c] {
				t.Errorf("column %d of %d: %v, want %v", c, cols, got[c], want[c])
			}
		}
	}
}
