package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/exectest"
)

// exactness is part c: the same bits captured and step by step, the CPU's losses, and the
// reference's gradients.
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
		bounds    bounds
	}{{cuda.F32, true, bounds{1e-5, 1e-5}}, {cuda.F32, false, bounds{1e-5, 1e-5}}, {cuda.TF32, false, bounds{2e-3, 4.5e-2}}, {cuda.BF16, false, bounds{2e-2, 0.1}}} {
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
			numbers, err := p.bounds.judge(want, got, names)
			return "", numbers, err
		}))
	}
	return errors.Join(err, gradients(ctx, r))
}

// bounds are how far reports may be from the CPU's: the losses of the first step, and all
// columns of all steps, of which the norms of gradients, the first step's too, are the
// farthest. An H200's all were apart by 2e-6 in f32, 1.4e-2 in tf32 and 3.4e-2 in bf16.
type bounds struct{ first, all float64 }

func (b bounds) judge(want, got [][]float64, names []string) (numbers map[string]any, err error) {
	first, of := farthest(means(want[:1], names), means(got[:1], names))
	all, column := farthest(want, got)
	numbers = map[string]any{"first": first, "of": names[of], "bound": b.first, "norms": apart(want[:1], got[:1]), "three_steps": all, "of_all": names[column], "bound_of_all": b.all}
	switch {
	case !(first <= b.first):
		err = fmt.Errorf("the first losses are apart by %.2g, want at most %.2g", first, b.first)
	case !(all <= b.all):
		err = fmt.Errorf("%s is apart by %.2g, want at most %.2g", names[column], all, b.all)
	}
	return numbers, err
}

// gradients are checks of networks' gradients, element by element, in the precisions that
// round, whose norms may be right by chance.
func gradients(ctx context.Context, r *report) (err error) {
	for _, c := range []cuda.Config{{Precision: cuda.TF32}, {Precision: cuda.BF16}, {Precision: cuda.BF16, Plain: true}} {
		name := fmt.Sprintf("gradients in %v against the reference's", c.Precision)
		if c.Plain {
			name += ", plain kernels"
		}
		err = errors.Join(err, r.do(ctx, "c", name, func() (_ string, _ map[string]any, err error) {
			be, err := gpu(c)
			if err != nil {
				return "", nil, err
			}
			defer func() { err = errors.Join(err, be.Close()) }()
			numbers, err := strayed(be, math.Ldexp(1, map[cuda.Precision]int{cuda.TF32: -10, cuda.BF16: -7}[c.Precision]))
			return "", numbers, err
		}))
	}
	return err
}

// strays is how many times what rounding costs a gradient may stray, at most: twice what the
// doubles may.
const strays = 8

// strayed holds a backend that rounds by epsilon to the reference.
func strayed(be exec.Backend, epsilon float64) (numbers map[string]any, err error) {
	most := 0.0
	for _, c := range exectest.Networks() {
		if !slices.Contains([]string{"energy, first order", "batch norm", "generator"}, c.Name) {
			continue
		}
		off, e := exectest.Strays(be, c, epsilon)
		if e == nil && !(off <= strays) {
			e = fmt.Errorf("it strays by %.2g times what rounding costs, want at most %d", off, strays)
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", c.Name, e))
		}
		most = max(most, off)
	}
	return map[string]any{"strays": most, "bound": strays}, err
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
