package main

import (
	"fmt"
	"log/slog"
	"math"
	"slices"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/trained"
)

// tally counts the samples that were drawn, and those that are none, since the model or the
// chain that draws them has diverged.
type tally struct{ all, broken int }

// add counts samples: broken are those with a value that is NaN or infinite, and sentences
// without an end, which only probabilities that are no numbers write.
func (t *tally) add(x *exec.Tensor, in algo.Inputs) {
	for sample := range slices.Chunk(x.F32(), in.Shape.Len()) {
		t.all++
		if slices.ContainsFunc(sample, noNumber) || trained.Sentences(in) && !slices.Contains(sample, data.End) {
			t.broken++
		}
	}
}

func noNumber(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

// tell is an error if no sample is one, and a warning if some are not.
func (t *tally) tell(run *trained.Run, log *slog.Logger) error {
	what := fmt.Sprintf("%d of the %d samples of %s after %s come of values that are not finite", t.broken, t.all, run.Path, run.After())
	switch {
	case t.broken == 0:
		return nil
	case t.broken < t.all:
		log.Warn("some samples are none", "problem", what+": the chain that draws them has diverged")
		return nil
	}
	return fmt.Errorf("%s: training diverged: draw from an earlier checkpoint (--step); nothing is written", what)
}
