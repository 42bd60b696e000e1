package main

import (
	"errors"
	"fmt"
	"slices"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
)

// plan is the cases that so many ranks measure, the fewest ranks first.
func (o *options) plan(world int) ([]*Case, error) {
	counts := slices.Compact(slices.Sorted(slices.Values(o.ranks)))
	if len(counts) == 0 {
		for k := 1; k < world; k *= 2 {
			counts = append(counts, k)
		}
		counts = append(counts, world)
	}
	most := counts[len(counts)-1]
	switch {
	case most > world:
		return nil, cliflag.Usage("--ranks has %d, and %d ranks were started: start more (ddplaunch -nproc %d bench …), or measure fewer", most, world, most)
	case o.settings.Batch < most:
		return nil, cliflag.Usage("--batch %d has fewer samples than there are ranks (%d): want at least one for each", o.settings.Batch, most)
	case o.settings.Batch%most != 0:
		return nil, cliflag.Usage("--batch %d is over all ranks and cannot be shared equally by %d: want a multiple of %d", o.settings.Batch, most, most)
	}
	if fit := o.fitted(most); o.check && (fit < 2 || fit >= most) {
		return nil, cliflag.Usage("--check fits on some numbers of ranks, at least 2, and predicts larger ones, and fitting on up to %d of %d ranks does not leave both: start at least 4, or choose --fit-up-to", fit, most)
	}
	cases, err := o.cases(counts)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if err := o.fits(c, most); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// cases are those of so many ranks each, of strong scaling, weak scaling, or both.
func (o *options) cases(counts []int) (cases []*Case, err error) {
	most := counts[len(counts)-1]
	for _, k := range counts {
		if o.scaling != weak {
			if o.settings.Batch%k != 0 {
				return nil, cliflag.Usage("--batch %d cannot be shared equally by %d ranks: want a multiple of all of --ranks %s, or --scaling weak", o.settings.Batch, k, list(counts))
			}
			cases = append(cases, &Case{Ranks: k, Batch: o.settings.Batch, Strong: true, Weak: k == most && o.scaling == both})
		}
		if o.scaling == weak || o.scaling == both && k != most {
			cases = append(cases, &Case{Ranks: k, Batch: o.settings.Batch / most * k, Weak: true})
		}
	}
	return cases, nil
}

// fits says what is wrong with a case's batch for the model; most is the number of ranks of
// the largest case.
func (o *options) fits(c *Case, most int) error {
	group, least := algo.GroupOf(o.model), algo.LeastBatchOf(o.model)
	if c.Batch < least { // of weak scaling on few ranks
		each := (least + c.Ranks - 1) / c.Ranks
		return cliflag.Usage("--batch %d is a batch of %d on %d of %d ranks, and the losses of --algo %s as they are set want at least %d: want --batch of at least %d", o.settings.Batch, c.Batch, c.Ranks, most, o.settings.Algo, least, most*each)
	}
	if each := c.Batch / c.Ranks; each%group != 0 { // of weak scaling as many as of most ranks, whose batch --batch is
		return cliflag.Usage("--batch %d gives each of %d ranks %d samples, and --algo %s takes samples in groups of %d: want a multiple of %d", o.settings.Batch, o.settings.Batch/each, each, o.settings.Algo, group, most*group)
	}
	return nil
}

// fitted is up to how many ranks of most the model is of.
func (o *options) fitted(most int) int {
	switch {
	case o.fitUpTo > 0:
		return o.fitUpTo
	case o.check:
		return most / 2
	}
	return most
}

// openData opens the data and fits the networks to them. Without --data they are
// built-in pictures of the size that the networks take.
func (o *options) openData() (data.Source, error) {
	name := o.data
	if name == "" {
		name = dataset.Synth
	}
	src, err := chosen.Open(name, o.settings.Split)
	if err != nil {
		return nil, err
	}
	if o.data == "" {
		wants, ok := errors.AsType[*algo.Misfit](o.model.Clone().Fit(src.Schema()))
		if ok && wants.H > 0 && wants.W > 0 {
			name = fmt.Sprintf("%s:size=%v", dataset.Synth, data.Size{H: wants.H, W: wants.W})
			if src, err = chosen.Open(name, o.settings.Split); err != nil {
				return nil, err
			}
		}
		if src, err = keep(src, max(o.settings.Batch, fewestKept)); err != nil {
			return nil, err
		}
	}
	if err := chosen.Fit(o.model, o.settings.Algo, name, src.Schema()); err != nil {
		if o.data == "" {
			return nil, fmt.Errorf("without --data steps are of built-in pictures, which do not fit: %w", err)
		}
		return nil, err
	}
	if err := chosen.CheckFlip(o.settings.Flip, name, src.Schema()); err != nil {
		return nil, err
	}
	if err := o.model.Validate(); err != nil {
		return nil, &cliflag.UsageError{Err: err}
	}
	o.data = name
	return src, nil
}
