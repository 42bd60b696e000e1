package bism

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// train takes steps of a rig on world ranks, in float64, and returns the reports
// and the variables of each rank.
func (r rig) train(world, steps int) (reports [][]float64, sets []exec.Vars, err error) {
	sets = make([]exec.Vars, world)
	err = ddptest.Each(world, func(rank int, comm collective.Comm) error {
		s := r.begin(world)
		s.build()
		g, err := s.Commit()
		if err != nil {
			return err
		}
		if sets[rank], err = r.vars(s.Variables()); err != nil {
			return err
		}
		r := r
		for i := range steps {
			r.step = int64(i)
			out, err := ddptest.Run(g, sets[rank], comm, r.inputs(rank, world))
			if err != nil {
				return err
			}
			if rank == 0 {
				reports = append(reports, out[algo.OutputReport])
			}
		}
		return nil
	})
	return reports, sets, err
}

// What moves in a step: with K = 0 neither φ nor its moments do, however much is
// unrolled; else φ moves by the K steps alone.
func TestUnrolledStepsAreThrownAway(t *testing.T) {
	after := func(k, n int) exec.Vars {
		r := newRig(tinyUnits(func(c *Config) { c.LowerSteps, c.Unroll = k, n }), 4)
		_, sets, err := r.train(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return sets[0]
	}
	r := newRig(tinyUnits(func(*Config) {}), 4)
	before, err := r.vars(r.begin(1).Variables())
	if err != nil {
		t.Fatal(err)
	}
	none, some, more := after(0, 3), after(2, 0), after(2, 3)
	for _, name := range before.Names() {
		b, z, s, m := numbers(t, before, name), numbers(t, none, name), numbers(t, some, name), numbers(t, more, name)
		if !strings.Contains(name, "posterior") {
			if slices.Equal(z, b) || slices.Equal(s, m) {
				t.Errorf("%s does not move, or not differently with unrolled steps", name)
			}
			continue
		}
		if !slices.Equal(z, b) {
			t.Errorf("%s moves with K = 0", name)
		}
		if slices.Equal(s, b) {
			t.Errorf("%s does not move with K = 2", name)
		}
		near(t, name+" with N = 3", m, s, 0)
	}
}

// MDSM's loss is reported times σ₀⁴, too, behind the loss itself.
func TestScaledLoss(t *testing.T) {
	r := newRig(tinyUnits(func(c *Config) { c.Objective, c.Sigma0 = MDSM, 0.8 }), 4)
	if name := r.cfg.Model().Report()[1].Name; name != "scaled" {
		t.Errorf("the second number is %s", name)
	}
	out, _, err := r.run(1, (*step).build, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := out[algo.OutputReport]
	near(t, "scaled", report[1:2], []float64{report[0] * math.Pow(0.8, 4)}, 1e-5)
}
