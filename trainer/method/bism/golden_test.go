package bism

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// golden is what a PyTorch program computes in two steps of BiDSM in float64
// (stepbench/peers/grbm_bidsm.py): 6 + 4 units, K = 2, N = 3, batch 6.
const golden = "../../stepbench/workload/testdata/grbm.json"

// wave are that program's numbers, sin(1.3·i + 0.7·k).
func wave(n, k int, scale, shift float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = shift + scale*math.Sin(1.3*float64(i)+0.7*float64(k))
	}
	return v
}

// Two steps, with draws given, leave PyTorch's losses and parameters on 1 and 2
// ranks. Its Adam has no guard in the root, whose effect is below the tolerance.
func TestAgainstPyTorch(t *testing.T) {
	var want struct {
		Losses [][]float64          `json:"losses"`
		Params map[string][]float64 `json:"params"`
	}
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	r := newRig(tinyUnits(func(c *Config) {
		c.LowerSteps, c.Unroll, c.Temperature, c.LR, c.InnerLR = 2, 3, 0.1, 0.01, 0
	}), 6)
	if len(want.Losses) != 2 || len(want.Params) != 6 {
		t.Fatalf("%s: want two steps and six parameters, got %d and %d", golden, len(want.Losses), len(want.Params))
	}
	for _, world := range []int{1, 2} {
		err := ddptest.Each(world, func(rank int, comm collective.Comm) error {
			return goldenRank(r, rank, world, comm, want.Losses, want.Params)
		})
		if err != nil {
			t.Errorf("%d ranks: %v", world, err)
		}
	}
}

func goldenRank(r rig, rank, world int, comm collective.Comm, losses [][]float64, params map[string][]float64) error {
	s := r.begin(world)
	numbered := map[string]int{} // input → number of the draw
	s.draw = func(p philox.Purpose, place int, _ graph.Dist, typ graph.Type) graph.ID {
		i := 2 * (place - innerPlace)
		if place == upperPlace {
			i = 2 * (r.cfg.LowerSteps + r.cfg.Unroll)
		}
		if p == philox.Hidden {
			i++
		}
		name := fmt.Sprintf("draw %d", i)
		numbered[name] = i
		return s.Input(name, typ)
	}
	s.build()
	g, err := s.Commit()
	if err != nil {
		return err
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, s.Variables(), 1); err != nil {
		return err
	}
	order := []string{"model.s", "model.w", "model.b", "model.c", "posterior.weight", "posterior.bias"}
	for k, name := range order {
		typ, _ := vars.Type(name)
		if err := vars.Set(name, ddptest.Tensor(typ, wave(typ.Shape.Len(), k, 0.4, 0))); err != nil {
			return err
		}
	}
	part := func(all []float64) []float64 { return all[rank*len(all)/world : (rank+1)*len(all)/world] }
	for step := range 2 {
		r.step = int64(step)
		in := r.inputs(rank, world)
		in[algo.InputImages] = part(wave(36, 50+step, 0.4, 0.5))
		for name, i := range numbered {
			if i%2 == 0 {
				in[name] = part(wave(36, 1000*step+i+100, 1.2, 0))
			} else {
				in[name] = part(wave(24, 1000*step+i+100, 0.45, 0.5))
			}
		}
		out, err := ddptest.Run(g, vars, comm, in)
		if err != nil {
			return err
		}
		// The report is of float32; the parameters are not.
		if err := ddptest.Near(out[algo.OutputReport][:2], losses[step], 1e-6); err != nil {
			return fmt.Errorf("losses of step %d: %w", step, err)
		}
	}
	for _, name := range order {
		got, err := vars.Get(name)
		if err != nil {
			return err
		}
		if err := ddptest.Near(ddptest.Numbers(got), params[name], 1e-8); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
