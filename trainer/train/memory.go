package main

import (
	"errors"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/run/loop"
)

// checkMemory reports sizes that the backend's memory, for nil this machine's,
// cannot hold.
func checkMemory(o *options, b exec.Backend, world int) error {
	model := o.model.Model()
	step, vars, err := model.Step(world, o.settings.Batch/world)
	if err == nil && o.settings.Average != 0 {
		step, _, err = optim.Average{Decay: o.settings.Average}.Add(step, vars)
	}
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

// doesNotFit is device.DoesNotFit of what train compiles.
func doesNotFit(err error, o *options, memory device.Store, ranksHere int) error {
	if errors.Is(err, loop.ErrSampler) {
		return device.DoesNotFit(err, "the program that draws samples", memory, ranksHere, "choose fewer --samples")
	}
	return device.DoesNotFit(err, "a step", memory, ranksHere, smaller(o))
}
