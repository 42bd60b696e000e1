package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ebtrain/ddp/exec/cuda"
)

// exactness is part c: the same bits captured and step by step, and the CPU's losses.
func exactness(ctx context.Context, o *options, r *report) error {
	const steps = 3
	err := r.do(ctx, "c", "captured steps are those of single ones, bit for bit", func() (string, map[string]any, error) {
		return "", nil, sameBits(ctx, cuda.Config{Graphs: cuda.GraphsOn, Plain: true})
	})
	if o.body {
		err = errors.Join(err, r.do(ctx, "c", "steps that are the body of a node are single ones, bit for bit", func() (string, map[string]any, error) {
			return "", nil, sameBits(ctx, cuda.Config{Graphs: cuda.GraphsOn, Plain: true, Body: true})
		}))
	}
	cpus := sync.OnceValues(func() ([][]float64, error) { return lossesOf(ctx, small, openCPU, steps) })
	names, namesErr := small.columns()
	if namesErr != nil {
		return errors.Join(err, namesErr)
	}
	for _, p := range []struct {
		precision cuda.Precision
		plain     bool
		bound     float64
	}{{cuda.F32, true, 1e-4}, {cuda.F32, false, 1e-4}, {cuda.TF32, false, 2e-3}, {cuda.BF16, false, 2e-2}} {
		name := fmt.Sprintf("first losses in %v against the CPU's", p.precision)
		if p.plain {
			name += ", plain kernels"
		}
		err = errors.Join(err, r.do(ctx, "c", name, func() (string, map[string]any, error) {
			want, err := cpus()
			if err != nil {
				return "", nil, err
			}
			got, err := lossesOf(ctx, small, openGPU(cuda.Config{Precision: p.precision, Plain: p.plain}), steps)
			if err != nil {
				return "", nil, err
			}
			first, column := farthest(means(want[:1], names), means(got[:1], names))
			numbers := map[string]any{"first": first, "of": names[column], "three_steps": apart(want, got), "bound": p.bound}
			if !(first <= p.bound) {
				return "", numbers, fmt.Errorf("the first losses are apart by %.2g, want at most %.2g", first, p.bound)
			}
			return "", numbers, nil
		}))
	}
	return err
}

// sameBits says whether the steps of a backend have the losses of launches one by one.
func sameBits(ctx context.Context, c cuda.Config) error {
	const steps = 5
	said := &said{}
	c.Say = said.say
	s, err := open(ctx, small, openGPU(c), nil)
	if err != nil {
		return err
	}
	got, err := s.losses(ctx, steps)
	if err == nil && c.Body {
		err = s.embodied(said)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	c.Graphs, c.Body = cuda.GraphsOff, false
	want, err := lossesOf(ctx, small, openGPU(c), steps)
	if err != nil {
		return err
	}
	if d := apart(got, want); d != 0 {
		return fmt.Errorf("the losses are apart by %.2g", d)
	}
	return nil
}

// means are the reports' columns that are means over samples, at their places; norms of
// gradients, which rounding changes more, are 0.
func means(reports [][]float64, names []string) [][]float64 {
	var list [][]float64
	for _, row := range reports {
		row = slices.Clone(row)
		for k, name := range names {
			if strings.HasPrefix(name, "grad") {
				row[k] = 0
			}
		}
		list = append(list, row)
	}
	return list
}
