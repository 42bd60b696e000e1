package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"syscall"

	"ebtrain/data/atomicfile"
)

// place makes the folders of what is written, and reports before the work what could
// not be.
func (o *options) place() error {
	for flag, file := range map[string]string{"json": o.json, "picture": o.picture} {
		if file == "" {
			continue
		}
		check := atomicfile.Check
		if flag == "json" {
			check = atomicfile.CheckPut
		}
		shown := file
		if o.out != "" && filepath.Dir(file) == filepath.Clean(o.out) {
			flag, shown = "out", o.out
		}
		switch err := atomicfile.MakeDir(filepath.Dir(file)); {
		case errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("--%s %s: %s, or what it lies in, is a file: want a folder", flag, shown, filepath.Dir(file))
		case err != nil:
			return fmt.Errorf("--%s %s: %w", flag, shown, err)
		}
		if err := check(file); err != nil {
			return fmt.Errorf("--%s %s: %w", flag, shown, err)
		}
	}
	return nil
}

// finish makes the report of what was measured, on rank 0, and shows it.
func (b *bench) finish(ctx context.Context, out io.Writer) error {
	r := b.r
	r.summarise()
	if err := r.fit(); err != nil {
		return err
	}
	wrong := r.compare()
	if err := r.extrapolate(ctx, b.o); err != nil {
		return err
	}
	if err := r.print(out); err != nil {
		return err
	}
	if err := r.keep(b.o); err != nil {
		return err
	}
	return wrong
}

// keep writes the report and its picture where they are wanted.
func (r *Report) keep(o *options) error {
	for _, f := range []struct {
		flag, file string
		write      func(string) error
	}{{"json", o.json, r.write}, {"picture", o.picture, r.draw}} {
		if f.file == "" {
			continue
		}
		if err := f.write(f.file); err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
	}
	return nil
}

// again predicts from a report.
func again(ctx context.Context, o *options, out io.Writer) error {
	r, err := read(o.from)
	if err != nil {
		return err
	}
	if err := o.place(); err != nil {
		return err
	}
	if r.Model == nil {
		return fmt.Errorf("--from: %s has nothing to predict from: %s", o.from, unfitted(r))
	}
	r.Checks, r.Predictions, r.Unshared = nil, nil, nil
	if err := r.extrapolate(ctx, o); err != nil {
		return err
	}
	if err := r.printPredictions(out); err != nil {
		return err
	}
	return r.keep(o)
}

// unfitted is why a report has no model.
func unfitted(r *Report) string {
	if len(r.Hosts) == 1 {
		return "one rank was measured alone, which has no collective to fit"
	}
	if len(r.Collectives) > 0 {
		return "no group of ranks that it was to be fitted on was measured, or their traces show no collectives"
	}
	return "its collectives were not timed (--fit-time 0)"
}

// tolerance is how far losses of a step may be apart, relative to them. Almost all agree
// to 1e-5; a value that rounding puts on the other side of a rectifier's kink moves the
// norm of a gradient by some 1e-4, on one number of ranks and not on the next (seen:
// 12.28521 on 1 and 4 ranks, 12.28831 on 2; 12.28521 with virtual shards).
const tolerance = 1e-3

// compare is an error if cases of the same batch have other losses in their first step:
// times of programs that do not compute the same thing say nothing about scaling.
func (r *Report) compare() error {
	var errs []error
	for i, c := range r.Cases {
		for _, base := range r.Cases[:i] {
			if base.Batch != c.Batch {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(c.First)) {
				a, b := base.First[name], c.First[name]
				if !(math.Abs(a-b) <= tolerance*(1+max(math.Abs(a), math.Abs(b)))) {
					errs = append(errs, fmt.Errorf("loss %s of the first step is %v on %d ranks and %v on %d, with the same batch of %d: they do not train the same model, so their times cannot be compared", name, a, base.Ranks, b, c.Ranks, c.Batch))
				}
			}
			break
		}
	}
	return errors.Join(errs...)
}
