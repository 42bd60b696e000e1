package chosen

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/trainer/algo"
)

func TestMisfitNamesWhatHelps(t *testing.T) {
	for _, tt := range []struct {
		name string
		h, w int
		want string // for a model of 32x32
	}{
		{"shards/mnist", 28, 28, "--data shards/mnist holds 28x28 pictures, and --net conv32 takes 32x32: make shards with mkshards --size 32, or with --pad 2, besides any that they have, to keep their pixels"},
		{"shards/odd", 29, 29, "mkshards --size 32"},
		{"shards/large", 64, 64, "mkshards --size 32"},
		{"shards/frey", 28, 20, "mkshards --size 32"},
		{"synth:size=16", 16, 16, "takes 32x32: say synth:size=32"},
		{"synth:size=28x20", 28, 20, "holds 28x20 pictures, and --net conv32 takes 32x32: say synth:size=32"},
		{"synthetic", 16, 16, "mkshards --size 32, or with --pad 8, besides any that they have, to keep their pixels"},
		{"shards/tall", 30, 28, "mkshards --size 32"},
		{"checkerboard", 1, 2, "--data checkerboard holds points of 2 values, and --net conv32 takes 32x32: give --data of pictures, or take a preset for points, as --preset cd-board is (train --preset help has all)"},
	} {
		err := misfit(tt.name, data.Schema{C: 1, H: tt.h, W: tt.w}, &algo.Misfit{What: "--net conv32", H: 32, W: 32})
		if !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v, want …%s", err, tt.want)
		}
	}
}

// Mirroring swaps the coordinates of a point, and the words of a sentence.
func TestCheckFlip(t *testing.T) {
	points, frey := data.Schema{C: 1, H: 1, W: 2}, data.Schema{C: 1, H: 28, W: 20}
	text := data.Schema{C: 1, H: 1, W: 8, Text: &data.Text{}}
	for _, tt := range []struct {
		flip bool
		of   data.Schema
		want string
	}{
		{true, points, "--flip mirrors pictures, and --data here holds points of 2 values: leave it out"},
		{true, text, "--flip mirrors pictures, and --data here holds sentences: leave it out"},
		{true, frey, ""}, {false, points, ""}, {false, text, ""},
	} {
		if err := CheckFlip(tt.flip, "here", tt.of); err == nil && tt.want != "" || err != nil && err.Error() != tt.want {
			t.Errorf("%v of %+v: %v, want %q", tt.flip, tt.of, err, tt.want)
		}
	}
}

// A method that has a preset for sentences names its own.
func TestPresetForSentences(t *testing.T) {
	for method, want := range map[string]string{"lebm": "lebm-snli", "bidvl": "lm-snli", "nothing": "lm-snli"} {
		if got := forSentences(method); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

// Sizes are said as the flags take them, also of pictures that are not square.
func TestMisfitNotSquare(t *testing.T) {
	wants := &algo.Misfit{What: "the model", H: 28, W: 20}
	for _, tt := range []struct {
		name string
		h, w int
		want string
	}{
		{"synth:size=32", 32, 32, "--data synth:size=32 holds 32x32 pictures, and the model takes 28x20: say synth:size=28x20"},
		{"shards/faces", 24, 16, "make shards with mkshards --size 28x20, or with --pad 2, besides any that they have, to keep their pixels"},
		{"shards/faces", 24, 18, "make shards with mkshards --size 28x20"},
	} {
		err := misfit(tt.name, data.Schema{C: 1, H: tt.h, W: tt.w}, wants)
		if !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v, want …%s", err, tt.want)
		}
	}
}

// Who has named no preset is told of the method, and which presets take such data.
func TestFitNamesMethodAndPresets(t *testing.T) {
	pictures := data.Schema{C: 1, H: 28, W: 20, DType: safetensors.U8}
	for method, want := range map[string]string{
		"bism":  "--preset bism-frey, bism-mnist",
		"cd":    "--preset cd-frey",
		"nce":   "--preset vnce-frey",
		"sm":    "--preset sm-frey, mdsm-mnist",
		"vages": "--preset vages-frey, vages-mnist",
	} {
		s, err := Names{Algo: method}.Begin()
		if err != nil {
			t.Fatal(err)
		}
		want = "--data frey holds 28x20 pictures, and --algo " + method + " is set up for vectors (1x1xd), not for pictures: give --data of vectors (checkerboard), or take one of the presets for pictures (" + want + ")"
		if err := Fit(s.Preset.Config.Clone(), method, "frey", pictures); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
