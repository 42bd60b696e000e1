package main

import (
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/nn"
)

// checkMemory reports sizes that the backend's memory, for nil this machine's,
// cannot hold.
func checkMemory(o *options, b exec.Backend, world int) error {
	model := o.model.Model()
	step, _, err := model.Step(world, o.settings.Batch/world)
	if err != nil {
		return err
	}
	if err := device.CheckMemory(b, step, "--batch, or narrower networks"); err != nil {
		return err
	}
	sampler, ok := model.(algo.Sampler)
	if !ok || o.samples == 0 {
		return nil
	}
	plan, err := sampler.Sample(nn.BatchStats, o.samples)
	if err != nil {
		return err
	}
	for _, s := range plan.Stages {
		if err := device.CheckMemory(b, s.Graph, "--samples"); err != nil {
			return err
		}
	}
	return nil
}

// smaller is what to do where there is too little memory.
func smaller(o *options) string {
	text := "choose a smaller --batch, narrower networks or fewer unrolled steps"
	if o.how.Remat {
		return text
	}
	return text + ", or try --remat"
}

// doesNotFit is err; if it says that a program needs more than the ranks here may have of a
// memory, with whose that is and what to do. What a full GPU says has both already.
func doesNotFit(err error, o *options, memory device.Store, ranksHere int) error {
	short, ok := errors.AsType[*exec.MemoryError](err)
	if !ok {
		return err
	}
	where := "the memory of " + memory.Of
	if !memory.Own {
		where += fmt.Sprintf(", shared by %d ranks", ranksHere)
	}
	return fmt.Errorf("a step does not fit into %s: %w: %s", where, short, smaller(o))
}
