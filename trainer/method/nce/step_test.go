package nce

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/grbm/grbmtest"
)

const batch = 8

// small is a machine of pictures of 1×2×2 with 3 hidden units.
func small(change func(c *Config)) Config {
	c := *with(grbm.Spec{C: 1, H: 2, W: 2, Hidden: 3}, true, 1e-2)
	c.PosteriorSteps, c.NoiseLatents = 2, 3
	c.Temperature = 0.5 // differences are exact enough
	c.Adam.Eps = 1      // with a small one, a step hardly depends on the size of a gradient
	change(&c)
	return c
}

var kinds = map[string]Config{
	"NCE":                         small(func(c *Config) { c.Variational = false }),
	"VNCE":                        small(func(c *Config) {}),
	"VNCE with a q that is fixed": small(func(c *Config) { c.PosteriorSteps = 0 }),
}

func model(cfg Config) Model { return Model{cfg.Machine.Machine(), cfg} }

func rig(cfg Config) grbmtest.Rig {
	m := model(cfg)
	return grbmtest.Rig{Backend: ref.New(), DType: graph.F64, Batch: batch, Build: m.build, Feeder: m.Feeder,
		Data: func(step int) []float64 { return ddptest.Noise(uint32(step+1), batch*m.Visible) }}
}

// Three steps against loops in plain Go with the same draws: every parameter,
// moment and entry of the report.
func TestStepAgainstLoops(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rig(cfg)
			sets, err := r.Start(1)
			if err != nil {
				t.Fatal(err)
			}
			l := loops{cfg: cfg, visible: 4, hidden: 3, vars: grbmtest.Variables(t, sets[0])}
			for l.step = range 3 {
				reports, err := r.Run(t.Context(), sets, l.step, l.step+1)
				if err != nil {
					t.Fatal(err)
				}
				if err := ddptest.Near(reports[0], l.take(r.Data(l.step)), 1e-7); err != nil {
					t.Errorf("step %d, report %v: %v", l.step, model(cfg).Report(), err)
				}
				got := grbmtest.Variables(t, sets[0])
				for name, want := range l.vars {
					if err := ddptest.Near(got[name], want, 1e-8); err != nil {
						t.Errorf("step %d, %s: %v", l.step, name, err)
					}
				}
			}
		})
	}
}

// A model that is the noise, with the right log Z, cannot be told from it: the
// loss is 2 log 2 and has no slope in a.
func TestModelThatIsTheNoise(t *testing.T) {
	for name, cfg := range kinds {
		r := rig(cfg)
		sets, err := r.Start(1)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range map[string][]float64{
			"model.s": make([]float64, 4), "model.w": make([]float64, 12), "model.b": make([]float64, 4), "model.c": make([]float64, 3),
			"contrast.log_z": {2*math.Log(2*math.Pi) + 3*math.Ln2},
			// q is the posterior, so that the estimates of VNCE are exact.
			"posterior.weight": make([]float64, 12), "posterior.bias": make([]float64, 3),
		} {
			typ, ok := sets[0].Type(name)
			if !ok {
				continue
			}
			if err := sets[0].Set(name, ddptest.Tensor(typ, x)); err != nil {
				t.Fatal(err)
			}
		}
		if cfg.Variational {
			cfg.PosteriorSteps = 0
			r = rig(cfg)
		}
		reports, err := r.Run(t.Context(), sets, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := ddptest.Near(reports[0][:3], []float64{2 * math.Ln2, math.Ln2, math.Ln2}, 1e-14); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m := grbmtest.Variables(t, sets[0])["adam.model.contrast.log_z.m"][0]; !(math.Abs(m) <= 1e-15) {
			t.Errorf("%s: log Z is right, and its gradient %v", name, m)
		}
	}
}

// Some thousand steps learn more of the checkerboard than its variances, and a
// is then near log Z, which begins 4.5 away.
func TestLearnsTheBoard(t *testing.T) {
	for name, variational := range map[string]bool{"NCE": false, "VNCE": true} {
		t.Run(name, func(t *testing.T) {
			cfg := *board(variational)
			cfg.Machine.W, cfg.Adam.LR = 2, 5e-3
			r := rig(cfg)
			r.Batch = 100
			vars, logz := r.LearnsTheBoard(t, model(cfg), 4000)
			if a := vars["contrast.log_z"][0]; !(math.Abs(a-logz) < 0.25) {
				t.Errorf("a is %v, log Z %v", a, logz)
			}
		})
	}
}
