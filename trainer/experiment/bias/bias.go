package bias

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"ebtrain/data/dataset"
	"ebtrain/trainer/device"
	"ebtrain/trainer/experiment/batch"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/method/bism"
)

// Flags of a row.
const (
	FlagSteps = "lower-steps" // K
	FlagRate  = "inner-lr"    // of a plain step
)

// Columns of a row, besides those of Column.
const (
	Distance = "distance" // ‖φ⁰ − φ*‖
	Growth   = "growth"   // ‖g(K, 30)‖ / ‖g(K, 0)‖
)

// Curve is the bias over N.
const Curve = "bias"

// Column is the bias with n unrolled steps.
func Column(n int) string { return fmt.Sprintf("N=%d", n) }

// Unrolled are the N of which the bias is measured.
func Unrolled() []int { return []int{0, 1, 2, 5, 10, 15, 20} }

// explosion is how much the gradient may grow with N before it is said to
// explode.
const explosion = 4

// protocol is how a row is measured.
type protocol struct {
	batch      int
	steps      int // K
	rate       float64
	manySteps  int // of g*
	manyUnroll int // of g* and of Growth
	star       int // steps to φ*
	unrolled   []int
}

// Compute measures a row on the data set.
func Compute(ctx context.Context, in plan.Computing) (out plan.Computed, err error) {
	p := protocol{batch: 100, manySteps: 300, manyUnroll: 30, star: 3000, unrolled: Unrolled()}
	if p.steps, err = strconv.Atoi(in.Row.Flags[FlagSteps]); err != nil || p.steps < 0 {
		return out, fmt.Errorf("bias: --%s %q: want a number of steps", FlagSteps, in.Row.Flags[FlagSteps])
	}
	if p.rate, err = strconv.ParseFloat(in.Row.Flags[FlagRate], 64); err != nil || !(p.rate > 0) {
		return out, fmt.Errorf("bias: --%s %q: want a rate above 0", FlagRate, in.Row.Flags[FlagRate])
	}
	backend, err := device.Open(device.Config{Device: "cpu", Precision: device.F32, Threads: in.Threads})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	preset, err := bism.Method().Preset("bism-frey")
	if err != nil {
		return out, err
	}
	cfg := *preset.Config.Clone().(*bism.Config) //nolint:errcheck // BiSM's own
	src, err := dataset.Open(in.Data, "train")
	if err != nil {
		return out, err
	}
	if err := cfg.Fit(src.Schema()); err != nil {
		return out, fmt.Errorf("%s: %w", in.Data, err)
	}
	cfg.InnerLR = p.rate
	x, err := batch.First(ctx, src, cfg.Model().Takes().Range, p.batch, in.Seed)
	if err != nil {
		return out, err
	}
	s, err := newStudy(cfg, backend, x, p.batch, in.Seed)
	if err != nil {
		return out, err
	}
	return s.measure(ctx, p, in.Tell)
}

// measure measures what a row has: the growth always, the rest unless the
// gradient explodes.
func (s *study) measure(ctx context.Context, p protocol, tell func(done, total int64)) (plan.Computed, error) {
	out := plan.Computed{Values: map[string]float64{}}
	done, total := int64(0), int64(len(p.unrolled)+4)
	step := func() { done++; tell(done, total) }
	phi, err := s.descend(ctx, s.origin(), p.steps)
	if err != nil {
		return out, err
	}
	step()
	norms := map[int]float64{}
	for _, n := range []int{0, p.manyUnroll} {
		g, _, err := s.hypergradient(ctx, phi, n)
		if err != nil {
			return out, err
		}
		norms[n] = floats.Norm(g, 2)
	}
	step()
	growth := norms[p.manyUnroll] / norms[0]
	if !math.IsNaN(growth) && !math.IsInf(growth, 0) { // JSON has neither
		out.Values[Growth] = growth
	}
	if !(growth < explosion) {
		out.Notes = append(out.Notes, fmt.Sprintf("steps of %v explode: the gradient's length is %.4g with nothing unrolled and %.4g with %d steps (×%.3g), so no bias is stated",
			p.rate, norms[0], norms[p.manyUnroll], p.manyUnroll, growth))
		return out, nil
	}
	if err := s.biases(ctx, p, phi, &out, step); err != nil {
		return out, err
	}
	star, err := s.descend(ctx, s.origin(), p.star)
	if err != nil {
		return out, err
	}
	step()
	out.Values[Distance] = distance(phi, star)
	return out, nil
}

// biases measures the bias for each N.
func (s *study) biases(ctx context.Context, p protocol, phi point, out *plan.Computed, step func()) error {
	far, err := s.descend(ctx, s.origin(), p.manySteps)
	if err != nil {
		return err
	}
	want, _, err := s.hypergradient(ctx, far, p.manyUnroll)
	if err != nil {
		return err
	}
	step()
	var curve []measure.Point
	for _, n := range p.unrolled {
		g, _, err := s.hypergradient(ctx, phi, n)
		if err != nil {
			return err
		}
		b := floats.Distance(g, want, 2) / floats.Norm(want, 2)
		out.Values[Column(n)] = b
		curve = append(curve, measure.Point{X: float64(n), Y: b})
		step()
	}
	out.Curves = map[string][]measure.Point{Curve: curve}
	return nil
}

// distance is the Euclidean distance of two points.
func distance(a, b point) float64 {
	sum := 0.0
	for name, x := range a {
		y := b[name].F32()
		for i, v := range x.F32() {
			d := float64(v) - float64(y[i])
			sum += d * d
		}
	}
	return math.Sqrt(sum)
}
