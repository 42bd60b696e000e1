package sm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/score"
)

// The loss of samples that are not trained on is that of the step which would
// train on them, which reports that of MDSM times σ₀⁴, too.
func TestHeldOutLoss(t *testing.T) {
	for name, cfg := range cases() {
		t.Run(name, func(t *testing.T) {
			const n = 4
			x := samples(cfg, n)
			reports, _ := train(t, cfg, 1, x)
			g, err := cfg.Model().(algo.Losing).Loss(n)
			if err != nil {
				t.Fatal(err)
			}
			_, specs, err := cfg.Model().Step(1, n)
			if err != nil {
				t.Fatal(err)
			}
			vars := ddptest.NewVars()
			if err := nn.Initialise(vars, specs, testSeed); err != nil {
				t.Fatal(err)
			}
			out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: x, algo.InputKey: {testSeed, 0, 0}})
			if err != nil {
				t.Fatal(err)
			}
			each := out[algo.OutputLoss]
			if len(each) != n {
				t.Fatalf("%d losses of %d samples", len(each), n)
			}
			sum := 0.0
			for _, l := range each {
				sum += l / n
			}
			near(t, "loss", []float64{sum}, reports[0][:1], 1e-4)
			told := cfg.Model().Report()
			if len(told) != len(reports[0]) {
				t.Fatalf("%d numbers are reported as %v", len(reports[0]), told)
			}
			for i, column := range told {
				if column.Name == "scaled" {
					near(t, column.Name, reports[0][i:i+1], []float64{sum * math.Pow(cfg.Sigma0, 4)}, 1e-4)
				}
			}
			if scaled := told[1].Name == "scaled"; scaled != (cfg.Objective == MDSM) {
				t.Errorf("%v are reported", told)
			}
		})
	}
}

// heldOut are the losses of samples x, the first of which has a number in the data.
func heldOut(t *testing.T, cfg *Config, vars exec.Vars, x []float64, first float64) []float64 {
	t.Helper()
	g, err := cfg.Model().(algo.Losing).Loss(len(x) / cfg.Model().Takes().Shape.Len())
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: x, algo.InputKey: {testSeed, 0, first}})
	if err != nil {
		t.Fatal(err)
	}
	return out[algo.OutputLoss]
}

// The noise of held-out samples is that of their own numbers, and its levels are spread
// over those that are given, wherever they lie in the data.
func TestHeldOutLevels(t *testing.T) {
	const n, first = 4, 300
	cfg := tinyMachine(func(c *Config) {
		c.Objective, c.Levels = MDSM, score.Grid{Least: 1, Most: 4, Spacing: score.Linear}
	})
	x, vars := samples(cfg, n), trained(t, cfg.Model())
	c, d := nn.NewContext(nn.Eval, 1), cfg.density()
	v, levels := c.Input("v", graph.T(graph.F32, n, 6)), c.Input("levels", graph.T(graph.F32, n))
	eps := c.Draw(c.Input("key", graph.KeyType), graph.Normal, philox.Perturb, 0, c.Type(v))
	c.Output("loss", score.Multiscale(c, d.score(c, score.Blur(c, v, eps, levels)), eps, levels, cfg.Sigma0))
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	want, err := ddptest.Run(g, vars, nil, ddptest.Values{"v": x, "levels": {1, 2, 3, 4}, "key": {testSeed, 0, first}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "loss", heldOut(t, cfg, vars, x, first), want["loss"], 1e-5)
}

// Directions are of ±1: where the score's derivative is a diagonal, a slice is the trace
// itself.
func TestDirections(t *testing.T) {
	cfg := tinyMachine(func(c *Config) { c.Objective, c.Trace = SSM, Sliced })
	vars, x := trained(t, cfg.Model()), samples(cfg, 4)
	typ, _ := vars.Type("model.w")
	if err := vars.Set("model.w", exec.NewTensor(typ)); err != nil {
		t.Fatal(err)
	}
	exact := *cfg
	exact.Trace = Exact
	near(t, "loss", heldOut(t, cfg, vars, x, 0), heldOut(t, &exact, vars, x, 0), 1e-5)
}
