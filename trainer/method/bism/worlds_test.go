package bism

import (
	"testing"

	"ebtrain/trainer/algo"
)

// cases are both models with both inner optimisers at some N.
func cases(unrolls ...int) (all []rig) {
	for _, n := range unrolls {
		for _, rule := range []Rule{Adam, SGD} {
			set := func(c *Config) { c.Unroll, c.LowerSteps, c.Inner = n, 2, rule }
			all = append(all, newRig(tinyUnits(set), 8), newRig(tinyNetworks(set), 8))
		}
	}
	return all
}

// The hypergradient of 2 and 4 ranks is that of one to 1e-12. It is not where
// inner gradients are averaged without their cotangents, nor where ranks unroll
// alone; without unrolled steps there is nothing to get wrong.
func TestHypergradientOfWorlds(t *testing.T) {
	const same, visible = 1e-12, 1e-6
	for _, r := range cases(0, 1, 5) {
		t.Run(label(r.cfg), func(t *testing.T) {
			one := r.hyper(t, 1, algo.AllReduced)
			for _, world := range []int{2, 4} {
				if d := distance(r.hyper(t, world, algo.AllReduced), one); !(d <= same) {
					t.Errorf("%d ranks: the hypergradient is off by %.2g of its length", world, d)
				}
			}
			for name, wrong := range map[string]algo.Inner{"without the cotangents' all-reduce": algo.NoAdjoint, "with local inner steps": algo.Local} {
				d := distance(gradients(r.hyper(t, 2, wrong)), gradients(one))
				t.Logf("2 ranks %s: off by %.2g", name, d)
				if r.cfg.Unroll == 0 && !(d <= same) {
					t.Errorf("2 ranks %s: off by %.2g though nothing is unrolled", name, d)
				}
				if r.cfg.Unroll > 0 && !(d > visible) {
					t.Errorf("2 ranks %s: off by %.2g only, so this test would not see the mistake", name, d)
				}
			}
		})
	}
}

// The noise of SSM and the levels of MDSM with a GRBM are global, too.
func TestObjectivesOfWorlds(t *testing.T) {
	for _, o := range []Objective{DSM, SSM, MDSM} {
		r := newRig(tinyUnits(func(c *Config) { c.Objective, c.Unroll, c.LowerSteps = o, 2, 1 }), 8)
		one := r.hyper(t, 1, algo.AllReduced)
		for _, world := range []int{2, 4} {
			if d := distance(r.hyper(t, world, algo.AllReduced), one); !(d <= 1e-12) {
				t.Errorf("%s, %d ranks: off by %.2g", o, world, d)
			}
		}
	}
}
