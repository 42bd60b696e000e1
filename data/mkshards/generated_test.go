package main

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
)

// A set that is made on the fly and the shards that mkshards writes of it are the
// same samples, in the same blocks, and so come in the same order.
func TestGeneratedBothWays(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: generated sets are not compared with their shards; other tests write and read shards")
	}
	for _, tt := range []struct {
		args []string
		name string
	}{
		{[]string{"checkerboard"}, "checkerboard"},
		{[]string{"checkerboard", "--cols", "5", "--seed", "3", "--train", "12000", "--val", "7", "--test", "0"}, "checkerboard:seed=3,cols=5,train=12000,val=7"},
		{[]string{"gauss"}, "gauss"},
		{[]string{"gauss", "--dim", "300", "--modes", "3", "--radius", "2.5", "--sd", "1e-2", "--seed", "9", "--train", "600"}, "gauss:dim=300,modes=3,radius=2.5,sd=1e-2,seed=9,train=600"},
		{[]string{"synth", "--size", "8", "--train", "300", "--val", "70", "--test", "70"}, "synth:size=8,train=300,val=70,test=70"},
		{[]string{"synth", "--size", "28x20", "--train", "300", "--val", "0"}, "synth:size=28x20,train=300,val=0"},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		if code, _, _, err := try(t, append(tt.args, "--out", dir)...); code != 0 {
			t.Fatal(err)
		}
		if code, _, _, err := try(t, "verify", dir); code != 0 {
			t.Error(err)
		}
		splits, err := dataset.Splits(dir)
		if err != nil || len(splits) < 2 {
			t.Fatalf("%s: splits %v, %v", tt.name, splits, err)
		}
		for _, split := range splits {
			shards, made := opened(t, dir, split), opened(t, tt.name, split)
			if shards.Len() != made.Len() || shards.Schema().String() != made.Schema().String() {
				t.Fatalf("%s: %d of %v as shards, %d of %v on the fly", tt.name, shards.Len(), shards.Schema(), made.Len(), made.Schema())
			}
			for _, shuffle := range []bool{false, true} {
				if shuffle && tt.args[0] == "synth" { // smaller blocks, so another order
					continue
				}
				a, b := values(t, shards, shuffle), values(t, made, shuffle)
				if len(a) != int(made.Len())*made.Schema().Elems() || !slices.Equal(a, b) {
					t.Errorf("%s, split %s, shuffled %v: shards and samples on the fly differ", tt.name, split, shuffle)
				}
			}
		}
	}
}

func opened(t *testing.T, name, split string) data.Source {
	t.Helper()
	src, err := dataset.Open(name, split)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// values are those of one epoch, in batches of 50.
func values(t *testing.T, src data.Source, shuffle bool) []float32 {
	t.Helper()
	l, err := loader.New(src, loader.Config{Batch: 50, World: 1, Tail: loader.Mask, Passes: 1, Shuffle: shuffle})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []float32
	for {
		b, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		n := src.Schema().Elems()
		for i, w := range b.Weight {
			if w == 1 {
				all = append(all, b.X[i*n:(i+1)*n]...)
			}
		}
	}
}
