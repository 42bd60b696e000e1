package main

import (
	"fmt"
	"strings"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/trainer/algo"
)

// misfit says that a model does not take the pictures of a data set, and what
// makes pictures that it takes.
func misfit(name string, s data.Schema, wants *algo.Misfit) error {
	size := wants.H
	advice := fmt.Sprintf("make shards with mkshards --size %d", size)
	switch margin := size - s.H; {
	case name == dataset.Synth || strings.HasPrefix(name, dataset.Synth+":"):
		advice = fmt.Sprintf("say %s:size=%d", dataset.Synth, size)
	case s.H == s.W && margin > 0 && margin%2 == 0:
		advice += fmt.Sprintf(", or with --pad %d, besides any that they have, to keep their pixels", margin/2)
	}
	return fmt.Errorf("--data %s holds %dx%d pictures, and %w: %s", name, s.H, s.W, wants, advice)
}
