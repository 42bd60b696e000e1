package fisher

import (
	"maps"
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/grbm/grbmtest"
	"ebtrain/trainer/model/nn"
)

const batch = 8

// small is a machine of 4 + 3 units.
func small(change func(c *Config)) Config {
	c := *with(4)
	c.Machine = grbm.Spec{C: 1, H: 1, W: 4, Hidden: 3}
	c.Rho, c.LowerSteps, c.Particles, c.Temperature = 0.7, 2, 3, 0.5
	c.Adam.LR = 1e-2
	change(&c)
	return c
}

var kinds = map[string]Config{
	"exact":            small(func(c *Config) {}),
	"variational":      small(func(c *Config) { c.Estimator = Variational }),
	"one particle":     small(func(c *Config) { c.Estimator, c.Particles = Variational, 1 }),
	"a q that is kept": small(func(c *Config) { c.Estimator, c.LowerSteps = Variational, 0 }),
}

func model(cfg Config) Model { return Model{cfg.Machine.Machine(), cfg} }

func rig(cfg Config) grbmtest.Rig {
	m := model(cfg)
	return grbmtest.Rig{Backend: ref.New(), DType: graph.F64, Batch: batch, Build: m.build, Feeder: m.Feeder,
		Data: func(step int) []float64 { return normal(step, batch*m.machine.Visible) }}
}

// normal are n draws of N(0, 1).
func normal(which, n int) []float64 {
	x := make([]float64, n)
	philox.Name{Seed: 1, Purpose: philox.Testing, Step: uint32(which)}.Normal(x)
	return x
}

// start are the variables before the first step, and as plain numbers.
func start(t *testing.T, cfg Config) (exec.Vars, ddptest.Values) {
	t.Helper()
	sets, err := rig(cfg).Start(1)
	if err != nil {
		t.Fatal(err)
	}
	return sets[0], grbmtest.Variables(t, sets[0])
}

// asked is what a trained model says of samples, in float64.
func asked(t *testing.T, cfg Config, vars exec.Vars, v []float64, step int) ddptest.Values {
	t.Helper()
	c := nn.NewContext(nn.Eval, 1)
	c.DType = graph.F64
	s := model(cfg).scene(c, len(v)/cfg.Machine.W)
	c.Output(algo.OutputEstimate, s.estimate())
	c.Output(algo.OutputTruth, s.truth())
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: v, algo.InputKey: {grbmtest.Seed, float64(step), 0}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The estimate, with its trace in closed form, the truth, and the loss of a step, with
// its projections, are those of loops with the same draws.
func TestAgainstLoops(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			cfg.LowerSteps = 0 // steps on q come before the critic sees it
			vars, values := start(t, cfg)
			l := loops{cfg: cfg, visible: 4, hidden: 3, vars: values, step: 3}
			v := normal(l.step, batch*4)
			got := asked(t, cfg, vars, v, l.step)
			var estimates, truths []float64
			loss := 0.0
			for i, v := range slices.Collect(slices.Chunk(v, 4)) {
				s := l.score(v, i)
				estimates = append(estimates, l.objective(v, s, l.trace(v)))
				truths = append(truths, l.truth(v))
				signs := l.draw(philox.Projection, 0, i, 4, rademacher)
				loss -= l.objective(v, s, l.along(v, signs)) / batch
			}
			if err := ddptest.Near(got[algo.OutputEstimate], estimates, 1e-8); err != nil {
				t.Error("estimate:", err)
			}
			if err := ddptest.Near(got[algo.OutputTruth], truths, 1e-8); err != nil {
				t.Error("truth:", err)
			}
			reports, err := rig(cfg).Run(t.Context(), []exec.Vars{vars}, l.step, l.step+1)
			if err != nil {
				t.Fatal(err)
			}
			if got := reports[0][0]; !(math.Abs(got-loss) <= 1e-8) {
				t.Errorf("the loss is %v, want %v", got, loss)
			}
		})
	}
}

// The loss that chooses among checkpoints falls as the estimate rises: it is minus that.
func TestHeldOutLoss(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			m := model(cfg)
			_, specs, err := m.Step(1, batch)
			if err != nil {
				t.Fatal(err)
			}
			vars := ddptest.NewVars()
			if err := nn.Initialise(vars, specs, grbmtest.Seed); err != nil {
				t.Fatal(err)
			}
			got := ddptest.Values{}
			for _, build := range []func(n int) (*graph.Graph, error){m.Loss, m.Divergence} {
				g, err := build(batch)
				if err != nil {
					t.Fatal(err)
				}
				out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: normal(5, batch*4), algo.InputKey: {grbmtest.Seed, 2, 0}})
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(got, out)
			}
			if len(got[algo.OutputLoss]) != batch {
				t.Fatalf("%d losses of %d samples", len(got[algo.OutputLoss]), batch)
			}
			for i, loss := range got[algo.OutputLoss] {
				if estimate := got[algo.OutputEstimate][i]; !(math.Abs(loss+estimate) <= 1e-6) || !(math.Abs(estimate) >= 1e-3) {
					t.Errorf("sample %d: the loss is %v, the estimate %v", i, loss, estimate)
				}
			}
		})
	}
}

// A step takes its steps on q first, each with draws of its own, and the critic sees the
// q that they leave.
func TestStepsOnPosterior(t *testing.T) {
	cfg := small(func(c *Config) { c.Estimator, c.LowerSteps = Variational, 2 })
	cfg.Adam.LR, cfg.Adam.Eps = 0.1, 1 // a step that depends on the size of a gradient
	vars, values := start(t, cfg)
	l := loops{cfg: cfg, visible: 4, hidden: 3, vars: values, step: 3}
	samples := slices.Collect(slices.Chunk(normal(l.step, batch*4), 4))
	lower, length := l.descend(samples)
	loss := 0.0
	for i, v := range samples {
		loss -= l.objective(v, l.score(v, i), l.along(v, l.draw(philox.Projection, 0, i, 4, rademacher))) / batch
	}
	reports, err := rig(cfg).Run(t.Context(), []exec.Vars{vars}, l.step, l.step+1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for i, c := range model(cfg).Report() {
		got[c.Name] = reports[0][i]
	}
	for name, want := range map[string]float64{"loss": loss, "posterior": lower, "grad_posterior": length} {
		if !(math.Abs(got[name]-want) <= 1e-7) {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	now := grbmtest.Variables(t, vars)
	for _, name := range []string{"posterior.weight", "posterior.bias"} {
		if err := ddptest.Near(now[name], l.vars[name], 1e-7); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rademacher is 1 where the lowest bit of the word is set, else −1.
func rademacher(n philox.Name, dst []float64) {
	for i := range dst {
		dst[i] = 2*float64(n.Uint32(i)&1) - 1
	}
}

// spread is the mean of x, and the standard error of it.
func spread(x []float64) (mean, se float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se) / float64(len(x))
}

// A model that is Gaussian has a score that is linear, and a critic that is the
// optimal one can be written down: its objective is the divergence, which is known in
// closed form. Sums over 40,000 samples, within 5 standard errors.
func TestSupremumOfAGaussian(t *testing.T) {
	cfg := small(func(c *Config) {})
	vars, _ := start(t, cfg)
	sigma, b := []float64{0.8, 1.5, 1, 1.2}, []float64{0.3, -0.5, 0, 1}
	const far = 40 // biases that keep every ELU where it is the identity
	id, slopes, ends, logs, shift := make([]float64, 16), make([]float64, 16), make([]float64, 4), make([]float64, 4), make([]float64, 4)
	want := 0.0
	for i := range 4 {
		precision := 1 / (sigma[i] * sigma[i])
		id[5*i], slopes[5*i], shift[i], logs[i] = 1, 1-precision, far, math.Log(sigma[i])
		ends[i] = b[i]*precision - slopes[5*i]*far
		want += ((1-precision)*(1-precision) + b[i]*b[i]*precision*precision) / 2
	}
	for name, x := range map[string][]float64{
		"model.w": make([]float64, 12), "model.b": b, "model.s": logs,
		"critic.1.weight": id, "critic.1.bias": shift, "critic.2.weight": id, "critic.2.bias": make([]float64, 4), "critic.3.weight": slopes, "critic.3.bias": ends,
	} {
		set(t, vars, name, x)
	}
	got := asked(t, cfg, vars, normal(1, 40_000*4), 0)
	for _, output := range []string{algo.OutputEstimate, algo.OutputTruth} {
		if mean, se := spread(got[output]); !(math.Abs(mean-want) <= 5*se) || se > 0.02*want {
			t.Errorf("%s is %v ± %v, want %v", output, mean, se, want)
		}
	}
	// Half of the optimal critic reaches three quarters of the divergence.
	for _, x := range [][]float64{slopes, ends} {
		for i := range x {
			x[i] /= 2
		}
	}
	set(t, vars, "critic.3.weight", slopes)
	set(t, vars, "critic.3.bias", ends)
	got = asked(t, cfg, vars, normal(2, 40_000*4), 0)
	if mean, se := spread(got[algo.OutputEstimate]); !(math.Abs(mean-0.75*want) <= 5*se) {
		t.Errorf("half of the optimal critic has %v ± %v, want %v", mean, se, 0.75*want)
	}
}

func set(t *testing.T, vars exec.Vars, name string, x []float64) {
	t.Helper()
	typ, ok := vars.Type(name)
	if !ok {
		t.Fatalf("there is no variable %s", name)
	}
	if err := vars.Set(name, ddptest.Tensor(typ, x)); err != nil {
		t.Fatal(err)
	}
}

// Any critic falls short of the divergence by ½⟨‖f − f*‖²⟩, f* = s + v, and so does not
// pass it: for critics as they are drawn, of machines that are not Gaussian.
func TestShortOfTheTruth(t *testing.T) {
	for _, far := range []float64{1, 6} {
		cfg := small(func(c *Config) { c.Rho = 1 })
		vars, values := start(t, cfg)
		for _, name := range []string{"critic.1.weight", "critic.3.weight"} {
			x := slices.Clone(values[name])
			for i := range x {
				x[i] *= far
			}
			set(t, vars, name, x)
			values[name] = x
		}
		l := loops{cfg: cfg, visible: 4, hidden: 3, vars: values}
		v := normal(3, 20_000*4)
		got := asked(t, cfg, vars, v, 0)
		estimate, _ := spread(got[algo.OutputEstimate])
		truth, _ := spread(got[algo.OutputTruth])
		var rest []float64 // of estimate = truth − short
		for i, v := range slices.Collect(slices.Chunk(v, 4)) {
			short := 0.0
			s := l.marginal(v)
			for k, f := range l.critic(v) {
				short += (f - s[k] - v[k]) * (f - s[k] - v[k]) / 2
			}
			rest = append(rest, got[algo.OutputEstimate][i]-got[algo.OutputTruth][i]+short)
		}
		if mean, se := spread(rest); !(math.Abs(mean) <= 5*se) || se > 0.05*truth || !(estimate < truth) {
			t.Errorf("×%v: estimate %v, truth %v: by what the critic is short of the best one they differ by %v ± %v", far, estimate, truth, mean, se)
		}
	}
}

// A trained critic comes near the truth from below, with the exact score and with the
// variational one.
func TestComesNearTheTruth(t *testing.T) {
	for name, estimator := range map[string]Estimator{"exact": Exact, "variational": Variational} {
		t.Run(name, func(t *testing.T) {
			cfg := small(func(c *Config) { c.Estimator, c.Particles, c.LowerSteps, c.Temperature = estimator, 1, 1, 0.1 })
			r := rig(cfg)
			r.Batch = 100
			r.Data = func(step int) []float64 { return normal(step, r.Batch*4) }
			sets, err := r.Start(1)
			if err != nil {
				t.Fatal(err)
			}
			fixed := grbmtest.Variables(t, sets[0])
			if _, err := r.Run(t.Context(), sets, 0, 1500); err != nil {
				t.Fatal(err)
			}
			for name, x := range grbmtest.Variables(t, sets[0]) {
				if moved := !slices.Equal(x, fixed[name]); moved == (name[:5] == "model") {
					t.Errorf("%s moves: %v", name, moved)
				}
			}
			got := asked(t, cfg, sets[0], normal(5000, 20_000*4), 0)
			estimate, se := spread(got[algo.OutputEstimate])
			truth, _ := spread(got[algo.OutputTruth])
			t.Logf("estimate %.4f ± %.4f of %.4f", estimate, se, truth)
			if estimate > truth+5*se || estimate < 0.9*truth {
				t.Errorf("the estimate is %v ± %v, the truth %v", estimate, se, truth)
			}
		})
	}
}

// ρ is the deviation of what is perturbed, and σ is 1; ρ = 0 is N(0, I) itself.
func TestPerturbation(t *testing.T) {
	cfg := *with(60)
	cfg.Rho = 0.4
	_, values := start(t, cfg)
	for _, name := range []string{"model.w", "model.b", "model.c"} {
		n, square := float64(len(values[name])), 0.0
		for _, x := range values[name] {
			square += x * x / (cfg.Rho * cfg.Rho * n)
		}
		if !(math.Abs(square-1) <= 5*math.Sqrt(2/n)) {
			t.Errorf("%s has a variance of %v·ρ²", name, square)
		}
	}
	if slices.Max(values["model.s"]) != 0 || slices.Min(values["model.s"]) != 0 {
		t.Errorf("log σ is %v", values["model.s"])
	}
	cfg = small(func(c *Config) { c.Rho = 0 })
	vars, _ := start(t, cfg)
	if got := asked(t, cfg, vars, normal(1, 40), 0)[algo.OutputTruth]; slices.Max(got) > 1e-15 {
		t.Errorf("with ρ = 0 the truth is %v", got)
	}
}
