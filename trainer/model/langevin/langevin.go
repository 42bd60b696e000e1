// Package langevin plans annealed Langevin dynamics, the sampler of deep energies
// [ALGORITHMS.md §2.3, as zengyi-li/MDSM and baofff/BiSM run it]:
//
//	x ← 0.5 + ξ
//	x ← x − ½η²∇E(x) + √T·η·ξ,  T = 100 for 500 steps, then down to 1 by equal
//	    ratios in 2,000, then down to 0 by equal differences in 200
//	x ← x − σ₀²∇E(x),  pictures then clamped to [0, 1]
//
// where ξ is standard normal, drawn anew for each transition and chain, and x is
// whatever moves: pictures, or pictures and latents together. Chains do not meet:
// the energy of one must not depend on another.
//
// Values of this package are plain and may be used from any goroutine.
package langevin

import (
	"errors"
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Annealed are the settings of the sampler.
type Annealed struct {
	Step    float64 // η
	Hottest float64 // temperature that it begins with, at least 1
	Hot     int     // steps at the hottest
	Cooling int     // steps down to 1
	Last    int     // steps from 1 to 0
	Denoise float64 // σ₀ of the last transition
}

// Published are the papers' settings.
func Published() Annealed {
	return Annealed{Step: 0.02, Hottest: 100, Hot: 500, Cooling: 2000, Last: 200, Denoise: 0.1}
}

// Shortened takes a share of the steps, in (0, 1], at each temperature; at least
// one where there were some.
func (a Annealed) Shortened(share float64) Annealed {
	for _, n := range []*int{&a.Hot, &a.Cooling, &a.Last} {
		*n = int(math.Ceil(share * float64(*n)))
	}
	return a
}

// Validate says what is wrong with the settings.
func (a Annealed) Validate() error {
	var errs []error
	want := func(ok bool, what string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("langevin: want %s, got %v", what, got))
		}
	}
	want(a.Step > 0 && a.Step <= math.MaxFloat32, "a step above 0", a.Step)
	want(a.Hottest >= 1 && a.Hottest <= math.MaxFloat32, "a first temperature of at least 1", a.Hottest)
	want(a.Hot >= 0 && a.Cooling >= 0 && a.Last >= 0, "steps of at least 0", []int{a.Hot, a.Cooling, a.Last})
	want(a.Denoise >= 0 && a.Denoise <= math.MaxFloat32, "a denoising noise of at least 0", a.Denoise)
	return errors.Join(errs...)
}

// Temperatures are T of each step.
func (a Annealed) Temperatures() []float64 {
	var all []float64
	for range a.Hot {
		all = append(all, a.Hottest)
	}
	for i := range a.Cooling {
		all = append(all, a.Hottest*math.Pow(a.Hottest, -float64(i)/float64(a.Cooling)))
	}
	for i := range a.Last {
		all = append(all, 1-float64(i)/float64(max(1, a.Last-1)))
	}
	return all
}

// System is what moves, and in which energy.
type System struct {
	// Pictures is the shape of the pictures, (n, C, H, W), which move.
	Pictures graph.Shape
	// Moving is the shape of the latents that move with the pictures, and Given of
	// those that stay as they are, (n, d); zero if there are none. Whoever runs the
	// plan sets the given ones: they are its first variable.
	Moving, Given graph.Shape
	// Energy is E, (n), of pictures v and latents h, whichever there are; h is 0 if
	// there are none. It declares its own variables.
	Energy func(c *nn.Context, v, h graph.ID) graph.ID
}

// InputTemperature is the input of a step that carries T.
const InputTemperature = "temperature"

// Plan is the sampler of n chains. Its result are the pictures. Draws are of
// purpose philox.Chain, sub 0 for pictures and 1 for latents that move.
func (a Annealed) Plan(s System) (chain.Plan, error) {
	if err := a.Validate(); err != nil {
		return chain.Plan{}, err
	}
	if s.Moving.Rank() > 0 && s.Given.Rank() > 0 {
		return chain.Plan{}, errors.New("langevin: latents either move or are given")
	}
	b := builder{Annealed: a, System: s}
	b.declare()
	start, err := b.start()
	if err != nil {
		return chain.Plan{}, err
	}
	step, err := b.step()
	if err != nil {
		return chain.Plan{}, err
	}
	finish, err := b.finish()
	if err != nil {
		return chain.Plan{}, err
	}
	temperatures := a.Temperatures()
	return chain.Plan{Vars: b.vars, Out: b.moving[0].Name, Stages: []chain.Stage{
		{Name: "start", Graph: start, Times: 1},
		{Name: "langevin", Graph: step, Times: len(temperatures), Feed: func(p exec.Program) func(i int) {
			in := p.Input(InputTemperature)
			return func(i int) { in.SetAt(0, temperatures[i]) }
		}},
		{Name: "denoise", Graph: finish, Times: 1},
	}}, nil
}
