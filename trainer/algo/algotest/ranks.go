package algotest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
)

// tolerance of what is equal but for the order of additions, relative to 1 +
// |value|, in float64: Adam divides by gradients, which may be small.
const tolerance = 1e-9

// ranksAgree: 2 and 4 ranks have the reports of one, and leave its variables, on
// every rank.
func (r rig) ranksAgree() error {
	const steps = 2
	one := newSets(1)
	want, err := r.train(one, 0, steps)
	if err != nil {
		return err
	}
	if slices.Equal(want[0], want[1]) {
		return fmt.Errorf("two steps with other data report %v, so ranks agree whatever they do", want[0])
	}
	for _, world := range briefly(2, 4) {
		sets := newSets(world)
		got, err := r.train(sets, 0, steps)
		if err != nil {
			return err
		}
		for rank, vars := range sets {
			if err := r.near(got, want, vars, one[0], tolerance); err != nil {
				return fmt.Errorf("rank %d of %d is not one rank: %w", rank, world, err)
			}
		}
	}
	return nil
}

// asWritten: steps whose nodes are fused, joined and taken apart, as plans do that promise
// no bits, report and leave what their nodes make one by one.
func (r rig) asWritten() error {
	const steps = 2
	sets, planned := newSets(1), newSets(1)
	want, err := r.train(sets, 0, steps)
	if err != nil {
		return err
	}
	r.on = oneThread
	got, err := r.train(planned, 0, steps)
	if err != nil {
		return err
	}
	return r.near(got, want, planned[0], sets[0], tolerance)
}

// briefly is some numbers of ranks, or the first where tests are to be short: under the
// race detector, which sees no more in four ranks than in two.
func briefly(worlds ...int) []int {
	if testing.Short() {
		return worlds[:1]
	}
	return worlds
}

// resumes: steps from saved variables, on one rank and on two, are those of the
// run that was not interrupted; on one to the last bit.
func (r rig) resumes() error {
	const steps, half = 2, 1
	whole, saved := newSets(1), newSets(1)
	want, err := r.train(whole, 0, steps)
	if err != nil {
		return err
	}
	if _, err := r.train(saved, 0, half); err != nil {
		return err
	}
	for _, world := range []int{1, 2} {
		sets := newSets(world)
		for _, vars := range sets {
			if err := r.load(vars, saved[0]); err != nil {
				return err
			}
		}
		got, err := r.train(sets, half, steps)
		if err != nil {
			return err
		}
		if err := r.near(got, want[half:], sets[0], whole[0], tolerance*float64(world-1)); err != nil {
			return fmt.Errorf("resumed on %d ranks: %w", world, err)
		}
	}
	return nil
}

// load copies what a checkpoint has.
func (r rig) load(to, from exec.Vars) error {
	names, err := r.replicated()
	if err != nil {
		return err
	}
	for _, name := range names {
		x, err := from.Get(name)
		if err != nil {
			return err
		}
		if err := to.Set(name, x); err != nil {
			return err
		}
	}
	return nil
}

// stops: what one rank asks for is in the report of all.
func (r rig) stops() error {
	at, err := stopColumn(r.model.Report())
	if err != nil {
		return err
	}
	r.asks = 1
	reports, err := r.train(newSets(2), 0, 1)
	if err == nil && reports[0][at] != 0.5 {
		err = fmt.Errorf("one of two ranks asks to stop, and column %d of the report %v is not 0.5", at, reports[0])
	}
	return err
}

// repeats: a step is built alike each time, and two runs have equal bits.
func (r rig) repeats() error {
	var before []byte
	for range 2 {
		g, specs, err := r.model.Step(1, r.batch())
		if err != nil {
			return err
		}
		digest := g.Digest()
		bits := digest[:]
		stages, err := r.stages(1, r.batch(), asIs)
		if err != nil {
			return err
		}
		if err := r.onCPU(g, stages, specs, nil, place{0, 1, r.batch()}, func(_ string, x []byte) { bits = append(bits, x...) }); err != nil {
			return err
		}
		if before == nil {
			before = bits
		}
		if !slices.Equal(bits, before) {
			return errors.New("two runs differ")
		}
	}
	return nil
}
