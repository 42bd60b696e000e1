package main

import (
	"fmt"
	"strings"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
)

// misfit says that a model does not take the samples of a data set, and what makes
// pictures that it takes.
func misfit(name string, s data.Schema, wants *algo.Misfit) error {
	return fmt.Errorf("--data %s holds %s, and %w: %s", name, held(s), wants, remedy(name, s, data.Size{H: wants.H, W: wants.W}))
}

// checkSentences reports sentences for a model of something else, and what cannot be
// done to them.
func (o *options) checkSentences(s data.Schema) error {
	switch {
	case s.Text == nil:
		return nil
	case !algo.TakesSentences(o.model):
		return fmt.Errorf("--data %s holds sentences, and --algo %s is not set up for them: give other --data, or a preset for sentences (lm-snli)", o.data, o.settings.Algo)
	case o.settings.Flip:
		return cliflag.Usage("--flip mirrors pictures, and --data %s holds sentences: leave it out", o.data)
	}
	return nil
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
		return "give --data of pictures"
	case kind == dataset.Synth:
		return fmt.Sprintf("say %s:size=%v", dataset.Synth, size)
	case margin.H == margin.W && margin.H > 0 && margin.H%2 == 0:
		return fmt.Sprintf("make shards with mkshards --size %v, or with --pad %d, besides any that they have, to keep their pixels", size, margin.H/2)
	default:
		return fmt.Sprintf("make shards with mkshards --size %v", size)
	}
}
