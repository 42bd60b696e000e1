package chosen

import (
	"errors"
	"fmt"
	"strings"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/settings"
)

// Fit fits a configuration of the method called method to data that --data name holds,
// and says what makes them fit if they do not.
func Fit(c algo.Config, method, name string, s data.Schema) error {
	if s.Text != nil && !algo.TakesSentences(c) {
		return fmt.Errorf("--data %s holds sentences, and --algo %s is not set up for them: give other --data, or a preset for sentences (%s)", name, method, forSentences(method))
	}
	err := c.Fit(s)
	if m, ok := errors.AsType[*algo.Misfit](err); ok {
		return misfit(name, s, m)
	}
	if err != nil {
		return fmt.Errorf("--data %s holds %s, and %w", name, held(s), err)
	}
	return nil
}

// CheckFlip reports a --flip, where it is set, of data that --data name holds and that
// are no pictures.
func CheckFlip(flip bool, name string, s data.Schema) error {
	if !flip || s.Text == nil && !isPoint(s) {
		return nil
	}
	what := "sentences"
	if s.Text == nil {
		what = held(s)
	}
	return cliflag.Usage("--flip mirrors pictures, and --data %s holds %s: leave it out", name, what)
}

// forSentences is a preset for sentences: the method's own, if it has one.
func forSentences(method string) string {
	m, err := settings.Method(method)
	if err == nil {
		for _, p := range m.Presets {
			if algo.TakesSentences(p.Config) {
				return p.Name
			}
		}
	}
	return "lm-snli"
}

// misfit says that a model does not take the samples of a data set, and what makes
// pictures that it takes.
func misfit(name string, s data.Schema, wants *algo.Misfit) error {
	return fmt.Errorf("--data %s holds %s, and %w: %s", name, held(s), wants, remedy(name, s, data.Size{H: wants.H, W: wants.W}))
}

// held is what samples are, in words.
func held(s data.Schema) string {
	if isPoint(s) {
		return fmt.Sprintf("points of %d values", s.Elems())
	}
	return fmt.Sprintf("%dx%d pictures", s.H, s.W)
}

func isPoint(s data.Schema) bool { return s.C == 1 && s.H == 1 }

// remedy says what makes pictures of a size.
func remedy(name string, s data.Schema, size data.Size) string {
	kind, _, _ := strings.Cut(name, ":")
	switch margin := (data.Size{H: size.H - s.H, W: size.W - s.W}); {
	case isPoint(s):
		return "give --data of pictures, or take a preset for points, as --preset cd-board is (train --preset help has all)"
	case kind == dataset.Synth:
		return fmt.Sprintf("say %s:size=%v", dataset.Synth, size)
	case margin.H == margin.W && margin.H > 0 && margin.H%2 == 0:
		return fmt.Sprintf("make shards with mkshards --size %v, or with --pad %d, besides any that they have, to keep their pixels", size, margin.H/2)
	default:
		return fmt.Sprintf("make shards with mkshards --size %v", size)
	}
}
