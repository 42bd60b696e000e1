package measure

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ebtrain/trainer/run/rundir"
)

// worlds are trainings of two steps on one rank and on two, whose last loss lower
// differs by off.
func worlds(off float64) []World {
	of := func(ranks int, lower, stepMS, cpu float64) World {
		return World{Ranks: ranks, Batch: 20, CPU: cpu, Records: []rundir.Record{
			{Losses: map[string]float64{"upper": 3, "lower": 2}, StepMS: 9e6, MemBytes: 1 << 20},
			{Losses: map[string]float64{"upper": 0, "lower": lower}, StepMS: stepMS, MemBytes: int64(ranks) << 21},
		}}
	}
	return []World{of(1, 4, 10_000, 22), of(2, 4+off, 6_000, 20)}
}

func TestRanks(t *testing.T) {
	paper := Published{Steps: 1000, Batch: 100, TeraOps: 0.5}
	take := func(name string, e Evidence) (float64, error) {
		m, ok := Find(name)
		if !ok || !m.Ranks {
			t.Fatalf("%s is no measure of numbers of ranks", name)
		}
		return m.Of(e)
	}
	for name, want := range map[string]float64{
		"losses": 4, "loss-gap": 0, "step-s-1": 10, "step-s-2": 6,
		"cpu-step": 10, // of 20 s two steps and the start; both ranks had 12 s
		"mem-1":    2, "mem-2": 4, "batch-published": 100, "steps-published": 1000,
		"days-here": 5. * 5 * 1000 / 86400, "tera-ops": 0.5, "days-h100": 0.5 / 67 * 1000 / 86400,
	} {
		if got, err := take(name, Evidence{Worlds: worlds(0), Published: paper}); err != nil || !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	short := worlds(0)
	short[1].CPU = 400 // nearly all of it before the first step
	if got, err := take("cpu-step", Evidence{Worlds: short}); err != nil || got != 12 {
		t.Errorf("processor time of a step %v, %v: want no more than two ranks have in 6 s", got, err)
	}
	if got, err := take("loss-gap", Evidence{Worlds: worlds(-3)}); err != nil || got != 0.75 {
		t.Errorf("4 and 1 differ by %v, %v, want three fourths", got, err)
	}
	for _, off := range []float64{math.NaN(), math.Inf(1)} {
		if got, err := take("loss-gap", Evidence{Worlds: worlds(off)}); !errors.Is(err, ErrNotFinite) {
			t.Errorf("a loss of %v gives %v, %v", off, got, err)
		}
	}
	both := worlds(math.NaN())
	both[0].Records[1].Losses["lower"] = math.NaN()
	if got, err := take("loss-gap", Evidence{Worlds: both}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN on all ranks gives %v, %v", got, err)
	}
}

// TestRanksMissing: what was not logged alike is not compared.
func TestRanksMissing(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(w []World) []World
	}{
		{"fewer than two numbers of ranks", func(w []World) []World { return w[:1] }},
		{"1 ranks logged 2 steps, 2 ranks 1", func(w []World) []World { w[1].Records = w[1].Records[:1]; return w }},
		{"1 ranks logged 0 steps", func(w []World) []World { w[0].Records, w[1].Records = nil, nil; return w }},
		{"1 ranks logged [lower upper], 2 ranks [upper]", func(w []World) []World { delete(w[1].Records[0].Losses, "lower"); return w }},
		{"1 ranks logged [], 2 ranks []", func(w []World) []World { w[0].Records[1].Losses, w[1].Records[1].Losses = nil, nil; return w }},
	} {
		if n, largest, err := gap(c.change(worlds(0))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d numbers, gap %v, %v: want an error with %q", n, largest, err, c.want)
		}
	}
}
