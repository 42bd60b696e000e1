package nn

import (
	"math"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// images are n pictures of c channels of hw pixels.
type images struct{ n, c, hw int }

func (s images) len() int { return s.n * s.c * s.hw }

// each calls f with the offset and the channel of every pixel.
func (s images) each(f func(i, c int)) {
	for i := range s.len() {
		f(i, i/s.hw%s.c)
	}
}

// moments are the mean and the biased variance of each channel.
func (s images) moments(x []float64) (mean, variance []float64) {
	mean, variance = make([]float64, s.c), make([]float64, s.c)
	n := float64(s.n * s.hw)
	s.each(func(i, c int) { mean[c] += x[i] / n })
	s.each(func(i, c int) { variance[c] += (x[i] - mean[c]) * (x[i] - mean[c]) / n })
	return mean, variance
}

// normalise is γ(x − mean)/√(variance + 1e-5) + β.
func (s images) normalise(x, mean, variance, gamma, beta []float64) []float64 {
	y := make([]float64, len(x))
	s.each(func(i, c int) { y[i] = gamma[c]*(x[i]-mean[c])/math.Sqrt(variance[c]+1e-5) + beta[c] })
	return y
}

// batchNorm is the layer by the batch's statistics.
func (s images) batchNorm(x, gamma, beta []float64) []float64 {
	mean, variance := s.moments(x)
	return s.normalise(x, mean, variance, gamma, beta)
}

// running are the statistics after x, as PyTorch's: momentum 0.1, the variance
// unbiased.
func (s images) running(x, mean, variance []float64) (m, v []float64) {
	bm, bv := s.moments(x)
	n := float64(s.n * s.hw)
	m, v = make([]float64, s.c), make([]float64, s.c)
	for c := range s.c {
		m[c] = 0.9*mean[c] + 0.1*bm[c]
		v[c] = 0.9*variance[c] + 0.1*bv[c]*n/(n-1)
	}
	return m, v
}

// normState are the variables of a layer.
type normState struct{ gamma, beta, mean, variance []float64 }

var normNames = []string{"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}

func newNormState(c int) normState {
	s := normState{ddptest.Noise(2, c), ddptest.Noise(3, c), ddptest.Noise(4, c), ddptest.Noise(5, c)}
	for i := range s.variance {
		s.variance[i] = 0.5 + math.Abs(s.variance[i])
	}
	return s
}

func (s normState) vars(t *testing.T, d graph.DType) exec.Vars {
	vars := ddptest.NewVars()
	for i, v := range [][]float64{s.gamma, s.beta, s.mean, s.variance} {
		if err := vars.Set(normNames[i], ddptest.Tensor(graph.T(d, len(v)), v)); err != nil {
			t.Fatal(err)
		}
	}
	return vars
}

func TestBatchNormModes(t *testing.T) {
	s := images{3, 2, 4}
	st, x := newNormState(s.c), ddptest.Noise(1, s.len())
	bm, bv := s.moments(x)
	rm, rv := s.running(x, st.mean, st.variance)
	for _, tt := range []struct {
		name           string
		mode           Mode
		mean, variance []float64 // used
		rm, rv         []float64 // kept
	}{
		{"train", Train, bm, bv, rm, rv},
		{"batch statistics", BatchStats, bm, bv, st.mean, st.variance},
		{"eval", Eval, st.mean, st.variance, st.mean, st.variance},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, vars := context64(tt.mode), st.vars(t, graph.F64)
			c.Output("y", BatchNorm2d{Name: "bn", C: s.c}.Apply(c, c.Input("x", graph.T(graph.F64, s.n, s.c, 2, 2))))
			out := run(t, c, vars, values{"x": x})
			near(t, "y", out["y"], s.normalise(x, tt.mean, tt.variance, st.gamma, st.beta), 1e-13)
			near(t, "running mean", numbers(t, vars, normNames[2]), tt.rm, 1e-14)
			near(t, "running variance", numbers(t, vars, normNames[3]), tt.rv, 1e-14)
		})
	}
}

func TestBatchNormStart(t *testing.T) {
	c, vars := context64(Train), ddptest.NewVars()
	BatchNorm2d{Name: "bn", C: 2}.Apply(c, c.Input("x", graph.T(graph.F64, 1, 2, 2, 2)))
	if err := Initialise(vars, c.Variables(), 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 0, 0, 1} {
		near(t, normNames[i], numbers(t, vars, normNames[i]), []float64{want, want}, 0)
	}
}

// Two passes in one graph advance the running statistics twice, also if they
// are one computation.
func TestBatchNormTwice(t *testing.T) {
	s := images{3, 2, 4}
	st := newNormState(s.c)
	for name, second := range map[string]uint32{"other images": 9, "the same images": 1} {
		t.Run(name, func(t *testing.T) {
			x := [][]float64{ddptest.Noise(1, s.len()), ddptest.Noise(second, s.len())}
			c, vars := context64(Train), st.vars(t, graph.F64)
			l := BatchNorm2d{Name: "bn", C: s.c}
			a := c.Input("x0", graph.T(graph.F64, s.n, s.c, 2, 2))
			b := a
			if second != 1 {
				b = c.Input("x1", c.Type(a))
			}
			ya, yb := l.Apply(c, a), l.Apply(c, b)
			c.Output("ya", ya)
			c.Output("yb", yb)
			if (ya == yb) != (a == b) {
				t.Errorf("equal passes are one computation: %v; want %v", ya == yb, a == b)
			}
			out := run(t, c, vars, values{"x0": x[0], "x1": x[1]})
			rm, rv := s.running(x[0], st.mean, st.variance)
			rm, rv = s.running(x[1], rm, rv)
			near(t, "first", out["ya"], s.batchNorm(x[0], st.gamma, st.beta), 1e-13)
			near(t, "second", out["yb"], s.batchNorm(x[1], st.gamma, st.beta), 1e-13)
			near(t, "running mean", numbers(t, vars, normNames[2]), rm, 1e-14)
			near(t, "running variance", numbers(t, vars, normNames[3]), rv, 1e-14)
		})
	}
}

// pass is one forward and backward pass: loss Σ a⊙y + ½Σ y³ over a rank's part.
func normPass(s images, d graph.DType, world int) *Context {
	c := NewContext(Train, world)
	c.DType = d
	shape := graph.T(d, s.n, s.c, 1, s.hw)
	x := c.Input("x", shape)
	y := BatchNorm2d{Name: "bn", C: s.c}.Apply(c, x)
	loss := c.Sum(c.Add(c.Mul(c.Input("a", shape), y), c.Scale(c.Mul(c.Square(y), y), 0.5)))
	ps := c.Params("bn")
	grads := c.Grad(loss, x, ps[0].ID, ps[1].ID)
	for i, name := range []string{"dx", "dgamma", "dbeta"} {
		c.Output(name, grads[i])
	}
	c.Output("y", y)
	return c
}

func normLoss(a, y []float64) float64 {
	sum := dot(a, y)
	for _, v := range y {
		sum += 0.5 * v * v * v
	}
	return sum
}

// The derivative goes through the batch's statistics.
func TestBatchNormGradient(t *testing.T) {
	s := images{3, 2, 4}
	st, x, a := newNormState(s.c), ddptest.Noise(1, s.len()), ddptest.Noise(6, s.len())
	out := run(t, normPass(s, graph.F64, 1), st.vars(t, graph.F64), values{"x": x, "a": a})
	near(t, "dx", out["dx"], slope(func(x []float64) float64 { return normLoss(a, s.batchNorm(x, st.gamma, st.beta)) }, x), 1e-7)
	near(t, "dgamma", out["dgamma"], slope(func(g []float64) float64 { return normLoss(a, s.batchNorm(x, g, st.beta)) }, st.gamma), 1e-7)
	near(t, "dbeta", out["dbeta"], slope(func(b []float64) float64 { return normLoss(a, s.batchNorm(x, st.gamma, b)) }, st.beta), 1e-7)
}

// normOnRanks runs normPass on slices of a batch and joins what the ranks got:
// outputs and image gradients side by side, parameter gradients added.
func normOnRanks(t *testing.T, s images, d graph.DType, world int, st normState, x, a []float64) values {
	t.Helper()
	part := images{s.n / world, s.c, s.hw}
	outs, sets := make([]values, world), make([]exec.Vars, world)
	for r := range sets {
		sets[r] = st.vars(t, d)
	}
	err := ddptest.Each(world, func(r int, comm collective.Comm) error {
		g, err := normPass(part, d, world).Commit()
		if err != nil {
			return err
		}
		n := part.len()
		outs[r], err = ddptest.Run(g, sets[r], comm, values{"x": x[r*n : (r+1)*n], "a": a[r*n : (r+1)*n]})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := values{"dgamma": make([]float64, s.c), "dbeta": make([]float64, s.c)}
	for r, out := range outs {
		for _, name := range []string{"y", "dx"} {
			all[name] = append(all[name], out[name]...)
		}
		for _, name := range []string{"dgamma", "dbeta"} {
			for c, v := range out[name] {
				all[name][c] += v
			}
		}
		for _, name := range normNames[2:] {
			if r > 0 {
				near(t, name+" of a replica", numbers(t, sets[r], name), numbers(t, sets[0], name), 0)
			}
			all[name] = numbers(t, sets[r], name)
		}
	}
	return all
}

// Slices of a batch on 1, 2 and 4 ranks against loops over the whole batch in
// float64. The tolerance is relative to 1 + |value|. Where the mean is 1000
// standard deviations from 0, float32 images are multiples of 6e-5, so the
// mean of a channel has an error of that size, and with it every result.
func TestSynchronisedBatchNorm(t *testing.T) {
	s := images{8, 3, 6}
	for _, tt := range []struct {
		name     string
		d        graph.DType
		mean, sd float64
		tol      float64 // of y and the running statistics
		tolGrad  float64 // of sd·dx, dγ and dβ
	}{
		{"f64", graph.F64, 0.3, 2, 1e-12, 1e-12},
		{"f64, mean 1000, sd 1", graph.F64, 1000, 1, 1e-10, 1e-10},
		{"f32", graph.F32, 0.3, 2, 3e-6, 1e-5},
		{"f32, mean 1000, sd 1", graph.F32, 1000, 1, 1e-4, 5e-4},
		{"f32, mean -20, sd 0.01", graph.F32, -20, 0.01, 1e-4, 1e-3},
	} {
		st, a := newNormState(s.c), ddptest.Noise(6, s.len())
		x := ddptest.Noise(1, s.len())
		s.each(func(i, c int) { // ranks differ in their means
			x[i] = tt.mean + tt.sd*(x[i]+0.5*float64(i*8/s.len()))
			if tt.d == graph.F32 {
				x[i] = float64(float32(x[i]))
				a[i] = float64(float32(a[i]))
			}
		})
		y := s.batchNorm(x, st.gamma, st.beta)
		rm, rv := s.running(x, st.mean, st.variance)
		h := 1e-5 * tt.sd
		dx := make([]float64, len(x))
		for i, v := range x {
			x[i] = v + h
			up := normLoss(a, s.batchNorm(x, st.gamma, st.beta))
			x[i] = v - h
			dx[i] = (up - normLoss(a, s.batchNorm(x, st.gamma, st.beta))) / 2e-5
			x[i] = v
		}
		dgamma := slope(func(g []float64) float64 { return normLoss(a, s.batchNorm(x, g, st.beta)) }, st.gamma)
		dbeta := slope(func(b []float64) float64 { return normLoss(a, s.batchNorm(x, st.gamma, b)) }, st.beta)
		for _, world := range []int{1, 2, 4} {
			t.Run(tt.name, func(t *testing.T) {
				out := normOnRanks(t, s, tt.d, world, st, x, a)
				for i := range out["dx"] {
					out["dx"][i] *= tt.sd
				}
				const fd = 1e-6 // the error of the finite differences
				near(t, "y", out["y"], y, tt.tol)
				near(t, "dx", out["dx"], dx, max(tt.tolGrad, fd))
				near(t, "dgamma", out["dgamma"], dgamma, max(tt.tolGrad, fd))
				near(t, "dbeta", out["dbeta"], dbeta, max(tt.tolGrad, fd))
				near(t, "running mean", out[normNames[2]], rm, tt.tol)
				near(t, "running variance", out[normNames[3]], rv, tt.tol)
			})
		}
	}
}

// A channel that is the same number everywhere has variance 0, never less.
func TestBatchNormOfConstants(t *testing.T) {
	s := images{4, 2, 3}
	for _, value := range []float64{0, 1, 1e6} {
		x := make([]float64, s.len())
		for i := range x {
			x[i] = value
		}
		st := newNormState(s.c)
		for _, world := range []int{1, 2, 4} {
			out := normOnRanks(t, s, graph.F32, world, st, x, make([]float64, s.len()))
			want := make([]float64, s.len())
			s.each(func(i, c int) { want[i] = st.beta[c] })
			near(t, "y", out["y"], want, 1e-6)
			for _, v := range out["dx"] {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%v on %d ranks: gradient %v", value, world, v)
				}
			}
		}
	}
}

// Where rounding would make the variance negative — 64 ranks, one of whose
// means is the next float32 — it is 0, and nothing becomes NaN.
func TestBatchNormOfAlmostConstants(t *testing.T) {
	const world = 64
	x := make([]float64, world)
	for i := range x {
		x[i] = 1<<24 - 1
	}
	x[0]--
	out := normOnRanks(t, images{world, 1, 1}, graph.F32, world, newNormState(1), x, make([]float64, world))
	for name, v := range out {
		for _, n := range v {
			if math.IsNaN(n) {
				t.Fatalf("%s is %v", name, v)
			}
		}
	}
}

// One value a channel is refused where its statistics are used, as in PyTorch:
// the layer would return its bias, whatever the image. Values count over all
// ranks.
func TestBatchNormOfOneValue(t *testing.T) {
	for _, tt := range []struct {
		mode   Mode
		world  int
		shape  graph.Shape
		refuse bool
	}{
		{Train, 1, graph.D(1, 3, 1, 1), true},
		{BatchStats, 1, graph.D(1, 3, 1, 1), true},
		{Eval, 1, graph.D(1, 3, 1, 1), false},
		{Train, 2, graph.D(1, 3, 1, 1), false},
		{Train, 1, graph.D(2, 3, 1, 1), false},
		{Train, 1, graph.D(1, 3, 1, 2), false},
	} {
		c := NewContext(tt.mode, tt.world)
		BatchNorm2d{Name: "bn", C: 3}.Apply(c, c.Input("x", graph.Type{DType: graph.F32, Shape: tt.shape}))
		const want = "bn: batch norm of f32[1,3,1,1] on 1 rank(s) has 1 value(s) in each channel, and needs at least 2"
		if err := c.Err(); (err != nil) != tt.refuse || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %d, %d ranks, %v: got %v, want an error: %v", tt.mode, tt.world, tt.shape, err, tt.refuse)
		}
	}
}
