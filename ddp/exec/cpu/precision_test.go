package cpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// openBF16 opens a backend that multiplies as bfloat16, or skips where the
// processor or the build cannot.
func openBF16(t testing.TB, n int) exec.Backend {
	t.Helper()
	team := threads.NewTeam(1)
	defer team.Close()
	eng, _, err := bestEngine(team)
	if err != nil {
		t.Fatal(err)
	}
	why := eng.BF16()
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if why != nil {
		t.Skip(why)
	}
	return open(t, Config{Threads: n, BF16: true})
}

func TestBF16Refused(t *testing.T) {
	b, err := New(Config{Threads: 1, Engine: loopEngine{}, BF16: true})
	if b != nil || !errors.Is(err, ErrNoBF16) || err.Error() != "cpu: no bf16: plain loops multiply float32 only" {
		t.Errorf("got %v, %v, want a refusal with the engine's reason", b, err)
	}
}

// TestInBF16 is the rule of what is multiplied as bfloat16.
func TestInBF16(t *testing.T) {
	matmul := func(m, n, k int) problem { return &matMulProblem{engine.MatMulProblem{M: m, N: n, K: k}} }
	image := func(c, o, groups int) problem {
		w := graph.NewConv(3, 1, 1)
		w.Groups = groups
		return conv(engine.Forward, w, graph.D(2, 4, 4, c), graph.D(2, 4, 4, o))
	}
	for _, c := range []struct {
		name string
		prob problem
		want bool
	}{
		{"matrices", matmul(8, 9, 10), true},
		{"matrix and vector", matmul(8, 1, 10), false},
		{"vector and matrix", matmul(1, 9, 10), false},
		{"inner product", matmul(1, 1, 10), false},
		{"outer product", matmul(8, 9, 1), false},
		{"layer", image(16, 32, 1), true},
		{"pictures in colour", image(3, 32, 1), true},
		{"pictures in grey", image(1, 32, 1), false},
		{"scalar energy", image(16, 1, 1), false},
		{"groups", image(16, 32, 4), true},
		{"depthwise", image(16, 16, 16), false},
	} {
		if got := c.prob.fitsBF16(); got != c.want {
			t.Errorf("%s: bfloat16 is %t, want %t", c.name, got, c.want)
		}
	}
}

// round is x in bfloat16.
func round(x float64) float64 {
	u := math.Float32bits(float32(x))
	return float64(math.Float32frombits((u + 0x7fff + u>>16&1) &^ 0xffff))
}

// TestBF16Cases runs the cases of single ops on arguments that are bfloat16
// already: every op, also a convolution, must then be right to float32 rounding.
// They are too small for the engine that rounds to integers instead.
func TestBF16Cases(t *testing.T) {
	unraced(t)
	be := openBF16(t, 2)
	for _, c := range exectest.Cases() {
		for i, a := range c.Args {
			fill := a.Fill
			if fill == nil {
				fill = exectest.Normal
			}
			c.Args[i].Fill = func(dst []float64, n philox.Name) {
				fill(dst, n)
				for k, v := range dst {
					dst[k] = round(v)
				}
			}
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := exectest.Check(be, c, graph.F32); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBF16Rounds shows that oneDNN rounds operands, by a product where that is
// all that happens, and that a product with a vector does not round. Plain Go
// never rounds those of a product.
func TestBF16Rounds(t *testing.T) {
	const v = 1 + 0x1p-9
	rounded := v
	if strings.Contains(openBF16(t, 1).Name(), "oneDNN") {
		rounded = 1
	}
	for n, want := range map[int]float64{2: rounded, 1: v} {
		var b graph.Builder
		b.Output("z", b.MatMul(b.Input("x", graph.T(graph.F32, 2, 2)), b.Input("y", graph.T(graph.F32, 2, n)), false, false))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p, err := openBF16(t, 1).Compile(g, exec.Options{Name: "product"})
		if err != nil {
			t.Fatal(err)
		}
		p.Input("x").SetAt(0, v)
		p.Input("y").SetAt(0, 1)
		if err := exec.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := p.Output("z").At(0); got != want {
			t.Errorf("%v times 1 in a product of %d columns: got %v, want %v", v, n, got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// firstMoments are Adam's after one BiDVL step from 0: half of each gradient.
func firstMoments(t *testing.T, be exec.Backend) map[string]*exec.Tensor {
	t.Helper()
	vars := be.NewVars()
	p := compileStep(t, be, 8, 8, exec.Options{Vars: vars})
	if err := exec.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	all := map[string]*exec.Tensor{}
	for _, name := range vars.Names() {
		if strings.HasSuffix(name, ".w.m1") {
			m, err := vars.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = m
		}
	}
	return all
}

// TestBF16Gradients compares the gradients of all layers with float32's. They
// are as far off as the nets' kinks make them: rounding moves activations by
// some 0.4 %, which flips the slope of about as many, and √0.004 is 6 % of a
// layer's gradient; the gradients pass up to twelve layers.
func TestBF16Gradients(t *testing.T) {
	unraced(t)
	half, full := firstMoments(t, openBF16(t, 1)), firstMoments(t, open(t, Config{Threads: 1}))
	if len(full) < 20 || len(half) != len(full) {
		t.Fatalf("%d and %d gradients, want the same number, 20 at least", len(half), len(full))
	}
	worst, where := 0.0, ""
	for name, m := range full {
		if d := apart(half[name].F32(), m.F32()); !(d <= worst) && !math.IsNaN(worst) {
			worst, where = d, name
		}
	}
	t.Logf("the gradients are off by %.1e of their length at most (%s)", worst, where)
	if !(worst <= 0.3) {
		t.Errorf("the gradient of %s is off by %v of its length, want at most 0.3", where, worst)
	}
}

// apart is the length of x−y relative to that of y.
func apart(x, y []float32) float64 {
	off, size := 0.0, 0.0
	for i := range y {
		off += math.Pow(float64(x[i]-y[i]), 2)
		size += math.Pow(float64(y[i]), 2)
	}
	return math.Sqrt(off / size)
}

// tenSteps are the losses of ten BiDVL steps.
func tenSteps(t *testing.T, be exec.Backend) (losses []float64) {
	t.Helper()
	p := compileStep(t, be, 8, 8, exec.Options{})
	for range 10 {
		if err := exec.Run(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, p.Output("upper").Scalar(), p.Output("lower").Scalar())
	}
	return losses
}

// TestBF16Training compares ten steps of training with float32: the losses must
// stay within 5 % of 1 + |loss|. A repetition must have the same bits.
func TestBF16Training(t *testing.T) {
	unraced(t)
	half, full := tenSteps(t, openBF16(t, 1)), tenSteps(t, open(t, Config{Threads: 1}))
	most := 0.0
	for i := range full {
		most = max(most, math.Abs(half[i]-full[i])/(1+math.Abs(full[i])))
	}
	t.Logf("losses of bf16 and f32 are apart by %.1e at most; f32 ends with %v", most, full[len(full)-2:])
	if !(most <= 0.05) || slices.Equal(half, full) {
		t.Errorf("losses of bf16 and f32: apart by %v, want at most 0.05 and not nothing\n%v\n%v", most, half, full)
	}
	if again := tenSteps(t, openBF16(t, 1)); !slices.Equal(again, half) {
		t.Errorf("the same training again: got %v, want %v", again, half)
	}
}

func TestBF16Name(t *testing.T) {
	if name := openBF16(t, 2).Name(); !strings.HasSuffix(name, ", bf16, 2 threads)") {
		t.Errorf("the name is %q", name)
	}
}
