package bism

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/score"
)

// The loss of samples that are not trained on is J of the step which would train
// on them, with a posterior that neither kept nor unrolled steps have moved.
func TestHeldOutLoss(t *testing.T) {
	still := func(c *Config) { c.LowerSteps, c.Unroll = 0, 0 }
	for _, cfg := range []Config{
		tinyUnits(still),
		tinyUnits(func(c *Config) { still(c); c.Objective = SSM }),
		tinyNetworks(func(c *Config) { still(c); c.Objective = MDSM }),
	} {
		t.Run(label(cfg), func(t *testing.T) {
			const n = 4
			r := newRig(cfg, n)
			m := r.cfg.Model()
			losses, err := m.(algo.Losing).Loss(n)
			if err != nil {
				t.Fatal(err)
			}
			step, _, err := m.Step(1, n)
			if err != nil {
				t.Fatal(err)
			}
			in := r.inputs(0, 1)
			each, err := ddptest.Run(losses, trained(t, m), nil, ddptest.Values{algo.InputImages: in[algo.InputImages], algo.InputKey: in[algo.InputKey]})
			if err != nil {
				t.Fatal(err)
			}
			out, err := ddptest.Run(step, trained(t, m), nil, in)
			if err != nil {
				t.Fatal(err)
			}
			if len(each[algo.OutputLoss]) != n {
				t.Fatalf("%d losses of %d samples", len(each[algo.OutputLoss]), n)
			}
			sum := 0.0
			for _, l := range each[algo.OutputLoss] {
				sum += l / n
			}
			near(t, "loss", []float64{sum}, out[algo.OutputReport][:1], 1e-4)
		})
	}
}

// The noise levels of held-out samples are spread over those that are given, wherever they
// lie in the data.
func TestHeldOutLevels(t *testing.T) {
	cfg := tinyUnits(func(c *Config) {
		c.Objective, c.Levels = MDSM, score.Grid{Least: 1, Most: 4, Spacing: score.Linear}
	})
	d, _, _ := cfg.trainee().drawing(4)
	d.Output("levels", d.levels)
	g, err := d.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, nil, nil, ddptest.Values{algo.InputKey: {testSeed, 2, 300}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "levels", out["levels"], []float64{1, 2, 3, 4}, 1e-6)
}
