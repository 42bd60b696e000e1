package winograd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/graph"
)

// withIntegers is an engine that scales, or the test is skipped: then bfloat16 is
// the other engine's.
func withIntegers(t *testing.T) *Engine {
	list := isas()
	if len(list) == 0 || list[0].int16s == nil {
		t.Skip("no products of 16-bit integers on this CPU")
	}
	e := always(t, 2, &list[0])
	closeAfter(t, e)
	return e
}

func deepProblem(n, c, size, o, k, stride int) engine.ConvProblem {
	p := enginetest.NewConvCase("", n, c, size, size, o, graph.NewConv(k, stride, 1)).ConvProblem
	p.BF16 = true
	return p
}

var ops = []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW}

// TestAsExactAsBF16: over many channels and many tiles, and for several kinds of
// numbers, results are at least as exact as those of operands rounded to
// bfloat16. Sums over 512 channels and 140 tiles have several scales.
func TestAsExactAsBF16(t *testing.T) {
	e := withIntegers(t)
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []struct {
		name string
		draw func() float64
	}{
		{"heavy tailed", func() float64 { return rng.NormFloat64() * math.Exp(rng.NormFloat64()) }},
		{"normal", rng.NormFloat64},
		{"rectified", func() float64 { return max(0, rng.NormFloat64()) }},
		{"sparse", func() float64 { return rng.NormFloat64() * math.Floor(rng.Float64()*1.05) }},
		{"tiny", func() float64 { return 1e-9 * rng.NormFloat64() }},
	}
	problems := []engine.ConvProblem{deepProblem(1, 144, 6, 16, 4, 2), deepProblem(1, 16, 4, 512, 3, 1), deepProblem(35, 16, 8, 16, 3, 1),
		deepProblem(1, 512, 4, 16, 3, 1), deepProblem(1, 16, 6, 512, 4, 2), deepProblem(35, 16, 16, 16, 4, 2)}
	if testing.Short() {
		kinds, problems = kinds[:1], problems[:2]
	}
	for _, p := range problems {
		for _, op := range ops {
			for _, kind := range kinds {
				na, nb := enginetest.Operands(op, p)
				own, bf16, err := enginetest.Rounding(e, op, p, draws(na, kind.draw), draws(nb, kind.draw))
				if err != nil {
					t.Fatal(err)
				}
				if !(own <= 0.8*bf16) {
					t.Errorf("%v of %v, %s numbers: error %.2g, want at most 0.8 of bfloat16's, which is %.2g", op, p, kind.name, own, bf16)
				}
			}
		}
	}
}

func draws(n int, draw func() float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(draw())
	}
	return v
}

// TestScalesNotFinite: what is not finite stays so where it is seen, and zeros stay
// zeros.
func TestScalesNotFinite(t *testing.T) {
	e := withIntegers(t)
	for _, p := range []engine.ConvProblem{deepProblem(2, 32, 8, 32, 3, 1), deepProblem(2, 32, 8, 32, 4, 2)} {
		for _, op := range ops {
			na, nb := enginetest.Operands(op, p)
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e30} {
				for i, n := range []int{na, nb} {
					operands := [2][]float32{draws(na, rand.NormFloat64), draws(nb, rand.NormFloat64)}
					operands[i][n/2+3] = float32(bad)
					got, err := enginetest.RunConv(e, op, p, operands[0], operands[1])
					if err != nil {
						t.Fatal(err)
					}
					if !slices.ContainsFunc(got, notFinite) {
						t.Errorf("%v of %v: all is finite in spite of %v in operand %d", op, p, bad, i)
					}
				}
			}
			got, err := enginetest.RunConv(e, op, p, make([]float32, na), draws(nb, rand.NormFloat64))
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
				t.Errorf("%v of %v: zeros became something else", op, p)
			}
		}
	}
}

func notFinite(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

// TestBF16OnFloat32Engine: where there are integers, an engine without bfloat16
// serves such problems, and without integers it says that it does not.
func TestBF16OnFloat32Engine(t *testing.T) {
	each(t, func(t *testing.T, i *isa) {
		e := always(t, 1, i)
		closeAfter(t, e)
		_, err := e.MatMul(engine.MatMulProblem{M: 2, N: 2, K: 2, BF16: true})
		if has := i.int16s != nil; (e.BF16() == nil) != has || (err == nil) != has {
			t.Errorf("integers: %t; BF16() is %v, a product %v", has, e.BF16(), err)
		}
	})
}

// TestScaleExtremes: the biggest sums there can be fit into 32 bits.
func TestScaleExtremes(t *testing.T) {
	e := withIntegers(t)
	for _, c := range []int{16, 512} {
		p := deepProblem(1, c, 4, 32, 3, 1)
		na, nb := enginetest.Operands(engine.Forward, p)
		one := func() float64 { return 1 }
		own, _, err := enginetest.Rounding(e, engine.Forward, p, draws(na, one), draws(nb, one))
		if err != nil {
			t.Fatal(err)
		}
		if !(own < 0.002) {
			t.Errorf("sums of %d equal channels are off by %.2g", c, own)
		}
	}
}
