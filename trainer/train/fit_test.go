package main

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/trainer/algo"
)

func TestMisfitNamesWhatHelps(t *testing.T) {
	for _, tt := range []struct {
		name string
		h, w int
		want string
	}{
		{"shards/mnist", 28, 28, "--data shards/mnist holds 28x28 pictures, and --net conv32 takes 32x32: make shards with mkshards --size 32, or with --pad 2, besides any that they have, to keep their pixels"},
		{"shards/odd", 29, 29, "mkshards --size 32"},
		{"shards/large", 64, 64, "mkshards --size 32"},
		{"shards/frey", 28, 20, "mkshards --size 32"},
		{"synth:size=16", 16, 16, "takes 32x32: say synth:size=32"},
	} {
		err := misfit(tt.name, data.Schema{C: 1, H: tt.h, W: tt.w}, &algo.Misfit{What: "--net conv32", H: 32, W: 32})
		if !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v, want …%s", err, tt.want)
		}
	}
}
