package vae

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

const testSeed = 5

// Sizes of the tiny networks: 1×2×2 pictures.
const (
	side   = 2
	pixels = side * side
	latent = 2
)

// affine is factor analysis: Q and G are affine, and the variance of Q is the same
// for all pictures. Bent bends both, for derivatives that are not constant.
type affine struct{ bent bool }

func (a affine) Energy(c *nn.Context, _ graph.ID) (logit, energy graph.ID) { return 0, 0 }

func (a affine) Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID) {
	c.Scope("inference", func() {
		n := c.Batch(v)
		x := c.Reshape(v, graph.D(n, pixels))
		mean = nn.Linear{Name: "mean", In: pixels, Out: latent}.Apply(c, x)
		logVar = c.BroadcastTo(c.Weight("logvar", graph.D(latent), nn.FanIn(1)), graph.D(n, latent))
		if a.bent {
			mean, logVar = c.Tanh(mean), c.Add(logVar, c.Sin(mean))
		}
	})
	return mean, logVar
}

func (a affine) Generator(c *nn.Context, h graph.ID) (v graph.ID) {
	c.Scope("generator", func() {
		y := nn.Linear{Name: "out", In: latent, Out: pixels}.Apply(c, h)
		if a.bent {
			y = c.Tanh(y)
		}
		v = c.Reshape(y, graph.D(c.Batch(h), 1, side, side))
	})
	return v
}

func tiny() Config {
	c := *conv(32)
	c.Net = nets.Spec{Family: nets.ConvFamily, Size: side, Channels: 1, Width: 4, Latent: latent}
	c.Variance, c.Beta = 0.3, 1
	return c
}

func run(t *testing.T, c *nn.Context, vars exec.Vars, in ddptest.Values) ddptest.Values {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func context64() *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	return c
}

// inputs are the images, and the key of a step.
func inputs(images []float64, step int) ddptest.Values {
	return ddptest.Values{algo.InputImages: images, algo.InputKey: {testSeed, float64(step), 0}, algo.InputStop: {0}}
}

func set(t *testing.T, vars exec.Vars, name string, x ...float64) {
	t.Helper()
	ty, ok := vars.Type(name)
	if !ok {
		t.Fatalf("there is no variable %s", name)
	}
	if err := vars.Set(name, ddptest.Tensor(ty, x)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	x, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// With an affine decoder whose columns are orthogonal the posterior is a diagonal
// Gaussian. Where Q is it, the bound is −log p(v), p(v) = N(b, WWᵀ + s²I), which is
// computed by a Cholesky factor here; where Q is not, it lies above by the
// divergence.
func TestBoundIsTightAtThePosterior(t *testing.T) {
	const draws = 40_000
	cfg := tiny()
	w := mat.NewDense(pixels, latent, []float64{1.2, 0.5, 1.2, -0.5, 0.3, 1, 0.3, -1})
	b, v := []float64{0.1, -0.2, 0.3, 0}, []float64{0.9, -0.7, 0.4, 0.2}
	var images []float64
	for range draws {
		images = append(images, v...)
	}
	bounds := func(shift float64) (mean, se float64) {
		vars := ddptest.NewVars()
		c := context64()
		c.Output("loss", cfg.bound(c, affine{}, cfg.images(c, draws), cfg.noise(c, draws)).loss)
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
			t.Fatal(err)
		}
		posterior(t, vars, cfg.Variance, w, b, shift)
		out, err := ddptest.Run(g, vars, nil, inputs(images, 0))
		if err != nil {
			t.Fatal(err)
		}
		return meanAndError(out["loss"])
	}
	want := -logDensity(t, cfg.Variance, w, b, v)
	got, se := bounds(0)
	if !(math.Abs(got-want) <= 4*se) || se > 0.02 {
		t.Errorf("the bound is %v ± %v, −log p(v) is %v", got, se, want)
	}
	// Means that are off by δ: a divergence of ½Σδ²/σ².
	const shift = 0.7
	off := 0.0
	for j := range latent {
		off += shift * shift / (2 * variance(w, j, cfg.Variance))
	}
	if got, se := bounds(shift); !(math.Abs(got-want-off) <= 4*se) {
		t.Errorf("with means off by %v it is %v ± %v, want %v", shift, got, se, want+off)
	}
}

// variance is that of the posterior of latent j.
func variance(w *mat.Dense, j int, s2 float64) float64 {
	return s2 / (s2 + mat.Dot(w.ColView(j), w.ColView(j)))
}

// posterior sets the networks to v = Wh + b and q = p(h|v), with its means shifted.
func posterior(t *testing.T, vars exec.Vars, s2 float64, w *mat.Dense, b []float64, shift float64) {
	t.Helper()
	var weight, bias, logVar []float64
	for j := range latent {
		at := shift
		for i := range pixels {
			weight = append(weight, w.At(i, j)*variance(w, j, s2)/s2)
			at -= weight[len(weight)-1] * b[i]
		}
		bias, logVar = append(bias, at), append(logVar, math.Log(variance(w, j, s2)))
	}
	set(t, vars, "inference.mean.weight", weight...)
	set(t, vars, "inference.mean.bias", bias...)
	set(t, vars, "inference.logvar", logVar...)
	set(t, vars, "generator.out.weight", w.RawMatrix().Data...)
	set(t, vars, "generator.out.bias", b...)
}

// logDensity is log N(v; b, WWᵀ + s²I).
func logDensity(t *testing.T, s2 float64, w *mat.Dense, b, v []float64) float64 {
	t.Helper()
	var cov mat.Dense
	cov.Mul(w, w.T())
	sym := mat.NewSymDense(pixels, nil)
	for i := range pixels {
		for j := range i + 1 {
			sym.SetSym(i, j, cov.At(i, j))
		}
		sym.SetSym(i, i, cov.At(i, i)+s2)
	}
	var chol mat.Cholesky
	if !chol.Factorize(sym) {
		t.Fatal("the covariance is not positive")
	}
	d := mat.NewVecDense(pixels, nil)
	d.SubVec(mat.NewVecDense(pixels, v), mat.NewVecDense(pixels, b))
	var x mat.VecDense
	if err := chol.SolveVecTo(&x, d); err != nil {
		t.Fatal(err)
	}
	return -0.5 * (mat.Dot(d, &x) + chol.LogDet() + pixels*math.Log(2*math.Pi))
}

func meanAndError(x []float64) (mean, se float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se) / float64(len(x))
}

// The terms of the bound, one sample at a time in plain loops, with the noise that
// is named for the step, and the weights β and 1/2s².
func TestTerms(t *testing.T) {
	const n = 3
	cfg := tiny()
	cfg.Beta, cfg.Variance = 2.5, 0.7
	images := ddptest.Noise(1, n*pixels)
	vars := ddptest.NewVars()
	c := context64()
	b := cfg.bound(c, affine{}, cfg.images(c, n), cfg.noise(c, n))
	c.Output("loss", b.loss)
	c.Output("recon", b.recon)
	c.Output("kl", b.kl)
	out := run(t, c, vars, inputs(images, 4))
	logVar := get(t, vars, "inference.logvar")
	for i := range n {
		v := images[i*pixels : (i+1)*pixels]
		mean := line(t, vars, "inference.mean", v)
		eps := make([]float64, latent)
		philox.Name{Seed: testSeed, Purpose: philox.Posterior, Step: 4, Sample: uint32(i)}.Normal(eps)
		kl, h := 0.0, make([]float64, latent)
		for j := range h {
			h[j] = mean[j] + math.Exp(logVar[j]/2)*eps[j]
			kl += (mean[j]*mean[j] + math.Exp(logVar[j]) - 1 - logVar[j]) / 2
		}
		recon := 0.0
		for j, y := range line(t, vars, "generator.out", h) {
			recon += (v[j] - y) * (v[j] - y)
		}
		loss := recon/(2*0.7) + pixels/2.0*math.Log(2*math.Pi*0.7) + 2.5*kl
		for name, want := range map[string]float64{"recon": recon, "kl": kl, "loss": loss} {
			if got := out[name][i]; !(math.Abs(got-want) <= 1e-6*(1+math.Abs(want))) { // draws are float32
				t.Errorf("sample %d: %s is %v, want %v", i, name, got, want)
			}
		}
	}
}

// line is a linear layer.
func line(t *testing.T, vars exec.Vars, layer string, x []float64) []float64 {
	t.Helper()
	w, y := get(t, vars, layer+".weight"), get(t, vars, layer+".bias")
	for o := range y {
		for i := range x {
			y[o] += w[o*len(x)+i] * x[i]
		}
	}
	return y
}

// A step's gradients are central differences of its loss, and its weights those of
// a plain loop of Adam.
func TestStepDescendsTheBound(t *testing.T) {
	const n, h = 3, 1e-4
	cfg := tiny()
	cfg.Beta, cfg.Adam.WeightDecay, cfg.Adam.Eps = 0.6, 0.2, 0.5
	images := ddptest.Noise(1, n*pixels)
	lossAt := func(vars exec.Vars) float64 {
		c := context64()
		c.Output("loss", c.Mean(cfg.bound(c, affine{bent: true}, cfg.images(c, n), cfg.noise(c, n)).loss))
		return run(t, c, vars, inputs(images, 0))["loss"][0]
	}
	vars := ddptest.NewVars()
	before := lossAt(vars)
	want, square := map[string][]float64{}, 0.0
	for _, name := range vars.Names() {
		base := get(t, vars, name)
		at := func(i int, step float64) float64 {
			x := append([]float64(nil), base...)
			x[i] += step
			set(t, vars, name, x...)
			defer set(t, vars, name, base...)
			return lossAt(vars)
		}
		for i, p := range base {
			g := (8*(at(i, h)-at(i, -h)) - (at(i, 2*h) - at(i, -2*h))) / (12 * h)
			square += g * g
			g += 0.2 * p
			want[name] = append(want[name], p-cfg.Adam.LR*g/(math.Abs(g)+0.5))
		}
	}
	c := context64()
	cfg.step(c, affine{bent: true}, n)
	in := inputs(images, 0)
	s := cfg.Adam.Schedule(0, 0)
	in[cfg.Adam.Input()] = []float64{float64(s[0]), float64(s[1])}
	report := run(t, c, vars, in)[algo.OutputReport]
	if !(math.Abs(report[0]-before) <= 1e-9*(1+math.Abs(before))) || !(math.Abs(report[4]-math.Sqrt(square)) <= 1e-7*(1+report[4])) {
		t.Errorf("reported are a loss of %v and a gradient of %v, want %v and %v", report[0], report[4], before, math.Sqrt(square))
	}
	for name, w := range want {
		if err := ddptest.Near(get(t, vars, name), w, 1e-8); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	moments := 0
	for _, name := range vars.Names() {
		if strings.HasPrefix(name, "adam.vae.") {
			moments++
		}
	}
	if len(want) != 5 || moments != len(want) {
		t.Errorf("%d variables are stepped, with %d moments, want 5 and 5", len(want), moments)
	}
}
