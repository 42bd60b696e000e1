package bism

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

// closed is a GRBM whose h is replaced by its mean: the lower level is then the
// KL divergence in closed form, but for what does not depend on φ.
type closed struct{ latent.Units }

type meanOnly struct{ latent.Belief }

func (m closed) Infer(c *nn.Context, phi []graph.ID, v graph.ID) latent.Belief {
	return meanOnly{m.Units.Infer(c, phi, v)}
}

func (q meanOnly) Sample(c *nn.Context, _ graph.ID) graph.ID { return q.Mean(c) }

// oracle is the lower level of one batch as a function of φ, with θ fixed: a
// vector of 28 numbers for 6 + 4 units.
type oracle struct {
	t    *testing.T
	r    rig
	vars exec.Vars
	g    *graph.Graph
	phi  []float64 // where it is evaluated
}

const phiSize = 4*6 + 4

// newOracle builds G's gradient and Hessian-vector product, J's gradients, and
// the cross derivative ∂(d·∂_φG)/∂θ.
func newOracle(t *testing.T) *oracle {
	r := newRig(tinyUnits(func(c *Config) {
		c.Inner, c.SameNoise, c.LowerSteps, c.Unroll = SGD, true, 0, 0
	}), 64)
	r.images = ddptest.Noise(2, 64*6) // of mean 0, so that G is well conditioned
	r.model = closed{r.model.(latent.Units)}
	s := r.begin(1)
	g := s.Grad(s.lower(s.phi.P, innerPlace), s.phi.P...)
	d := vectorInput(s, "d")
	along := s.Zeros(graph.T(graph.F64))
	for i := range g {
		along = s.Add(along, s.Sum(s.Mul(g[i], d[i])))
	}
	s.Output("gradient", flat(s, g))
	s.Output("hvp", flat(s, s.Grad(along, s.phi.P...)))
	s.Output("cross", flat(s, s.Grad(along, s.theta.P...)))
	upper := s.upper(s.phi.P)
	s.Output("J_phi", flat(s, s.Grad(upper, s.phi.P...)))
	s.Output("J_theta", flat(s, s.Grad(upper, s.theta.P...)))
	// The loss that BiDSM's is with the true posterior.
	v := s.see(upperPlace)
	miss := s.Add(grbm.Of(s.theta.P).Score(s.Context, v.v), s.Scale(v.eps, 1/s.cfg.Sigma))
	dsm := s.Scale(s.Sum(s.Square(miss)), 0.5/float64(s.Batch(v.v)))
	s.Output("marginal", flat(s, s.Grad(dsm, s.theta.P...)))
	graph, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars, err := r.vars(s.Variables())
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{t: t, r: r, vars: vars, g: graph}
	o.phi = append(numbers(t, vars, "posterior.weight"), numbers(t, vars, "posterior.bias")...)
	return o
}

// vectorInput is an input vector cut like φ.
func vectorInput(s *step, name string) []graph.ID {
	x := s.Input(name, graph.T(graph.F64, phiSize))
	return []graph.ID{s.Reshape(s.Slice(x, 0, 0, 24, 1), graph.D(4, 6)), s.Slice(x, 0, 24, 28, 1)}
}

// flat is values as one vector.
func flat(s *step, xs []graph.ID) graph.ID {
	var parts []graph.ID
	for _, x := range xs {
		parts = append(parts, s.Reshape(x, graph.D(s.Shape(x).Len())))
	}
	return s.Concat(0, parts...)
}

// setPhi sets φ in vars.
func (o *oracle) setPhi(vars exec.Vars) error {
	for name, part := range map[string][]float64{"posterior.weight": o.phi[:24], "posterior.bias": o.phi[24:]} {
		typ, _ := vars.Type(name)
		if err := vars.Set(name, ddptest.Tensor(typ, part)); err != nil {
			return err
		}
	}
	return nil
}

// at evaluates everything at φ, along d.
func (o *oracle) at(d []float64) ddptest.Values {
	o.t.Helper()
	if err := o.setPhi(o.vars); err != nil {
		o.t.Fatal(err)
	}
	in := o.r.inputs(0, 1)
	in["d"] = d
	out, err := ddptest.Run(o.g, o.vars, nil, in)
	if err != nil {
		o.t.Fatal(err)
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }

// axpy is y + a·x.
func axpy(a float64, x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = y[i] + a*x[i]
	}
	return out
}

// solve is H⁻¹b at φ, by conjugate gradients on Hessian-vector products.
func (o *oracle) solve(b []float64) []float64 {
	x, res := make([]float64, len(b)), append([]float64(nil), b...)
	dir := res
	for range 10 * len(b) {
		if norm(res) <= 1e-10*norm(b) {
			return x
		}
		h := o.at(dir)["hvp"]
		a := dot(res, res) / dot(dir, h)
		next := axpy(-a, h, res)
		x, dir, res = axpy(a, dir, x), axpy(dot(next, next)/dot(res, res), dir, next), next
	}
	o.t.Fatalf("conjugate gradients end at a residual of %.2g", norm(res)/norm(b))
	return nil
}

// minimise moves φ to φ*, by descent to where G is convex and Newton's method.
func (o *oracle) minimise() {
	for range 300 {
		o.phi = axpy(-1, o.at(make([]float64, phiSize))["gradient"], o.phi)
	}
	for range 50 {
		g := o.at(make([]float64, phiSize))["gradient"]
		if norm(g) < 1e-12 {
			return
		}
		o.phi = axpy(-1, o.solve(g), o.phi)
	}
	o.t.Fatal("Newton's method does not converge")
}

// extremes are the least and the largest eigenvalue of the Hessian at φ, by
// powers of H and of λ_max − H.
func (o *oracle) extremes() (least, most float64) {
	h := make([][]float64, phiSize)
	for i := range h {
		e := make([]float64, phiSize)
		e[i] = 1
		h[i] = o.at(e)["hvp"]
	}
	power := func(shift float64) (value float64) {
		x := ddptest.Noise(9, phiSize)
		for range 20_000 {
			y := make([]float64, phiSize)
			for i := range y {
				y[i] = dot(h[i], x) - shift*x[i]
			}
			value = dot(x, y) / dot(x, x)
			for i := range y {
				x[i] = y[i] / norm(y)
			}
		}
		return value
	}
	most = power(0)
	return most + power(most), most
}

// unrolled is the hypergradient from φ through n plain steps of rate a.
func (o *oracle) unrolled(n int, a float64) []float64 {
	o.t.Helper()
	r := o.r
	r.cfg.Unroll, r.cfg.InnerLR = n, a
	out, _, err := r.run(1, func(s *step) { s.hypergradient(algo.AllReduced) }, o.setPhi)
	if err != nil {
		o.t.Fatal(err)
	}
	var all []float64
	for _, name := range []string{"model.s", "model.w", "model.b", "model.c"} {
		all = append(all, out[algo.GradientOf(name)]...)
	}
	return all
}

// At the optimum φ* of the lower level the unrolled gradient tends to the
// implicit one, ∂_θJ − ∂²_θφG (∂²_φφG)⁻¹ ∂_φJ, with a bias that falls by
// κ = 1 − αλ_min a step. There q is the true posterior, so the implicit gradient
// is that of the marginal's score matching, too.
func TestImplicitGradient(t *testing.T) {
	o := newOracle(t)
	o.minimise()
	here := o.at(make([]float64, phiSize))
	implicit := axpy(-1, o.at(o.solve(here["J_phi"]))["cross"], here["J_theta"])
	near(t, "the implicit gradient", implicit, here["marginal"], 1e-8)
	if d := norm(axpy(-1, implicit, here["J_theta"])) / norm(implicit); d < 1e-2 {
		t.Fatalf("the implicit gradient is the direct one to %.2g: this test sees nothing", d)
	}

	least, most := o.extremes()
	rate := 1 / most
	kappa := 1 - rate*least
	bias := func(n int) float64 { return norm(axpy(-1, implicit, o.unrolled(n, rate))) / norm(implicit) }
	var from, to float64
	const first, last = 15, 45
	from, to = bias(first), bias(last)
	slope := math.Log(to/from) / (last - first)
	t.Logf("eigenvalues %.3g to %.3g, κ = %.4f; bias %.2g at N = 0, %.2g at %d, %.2g at %d; slope %.4f, log κ %.4f",
		least, most, kappa, bias(0), from, first, to, last, slope, math.Log(kappa))
	if !(math.Abs(slope/math.Log(kappa)-1) < 0.1) {
		t.Errorf("the bias falls by e^%.4f a step, and κ is e^%.4f", slope, math.Log(kappa))
	}
	middle := bias((first + last) / 2)
	if bent := math.Abs(math.Log(middle/math.Sqrt(from*to))) / math.Abs(math.Log(to/from)); !(bent < 0.05) {
		t.Errorf("the logarithm of the bias is no line: its middle is off by %.2g of its fall", bent)
	}
}
