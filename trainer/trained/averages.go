package trained

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"ebtrain/trainer/run/ckpt"
)

// Choice is what is read of a run.
type Choice struct {
	Step int64 // after which the checkpoint was written, or Newest
	// Averages has the weights be their moving averages, which a run with --ema keeps. The
	// statistics of batch norm stay those that go with the weights themselves.
	Averages bool
}

// After says what the model is, behind the run's name: "200 steps", "200 steps, averages of
// weights".
func (r *Run) After() string { return After(r.State.Step, r.Averages) }

// After is Run.After of such a run.
func After(step int64, averages bool) string {
	text := english.Plural(int(step), "step", "")
	if averages {
		text += ", averages of weights"
	}
	return text
}

// averaged are the weights of the checkpoint at path, which holds groups, with averages in
// their place; those that no step moves have none and stay.
func averaged(groups map[string][]ckpt.Named, path string) ([]ckpt.Named, error) {
	averages := groups[ckpt.Averages]
	if len(averages) == 0 {
		return nil, fmt.Errorf("%s has no moving averages of weights, as a run has that is trained with --ema: leave --ema out", path)
	}
	weights := slices.Clone(groups[ckpt.Weights])
	for i, w := range weights {
		if k := slices.IndexFunc(averages, func(a ckpt.Named) bool { return a.Name == w.Name }); k >= 0 {
			weights[i] = averages[k]
		}
	}
	return weights, nil
}
