package dataset

import (
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	w, err := shard.Create(dir, shard.Options{Schema: data.Schema{C: 1, H: 2, W: 2, DType: safetensors.U8}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "train", make([]byte, 4), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, split string
		n           int64
		size        int
		err         string
	}{
		{"synth", "train", 8192, 32, ""},
		{"synth:size=64,test=10,seed=3", "test", 10, 64, ""},
		{"synth:size=x", "test", 0, 0, `"x", expected a side as in 32, or rows x columns as in 28x20`},
		{"synth:size", "test", 0, 0, "expected key=number"},
		{"synth:size=28x20", "train", 8192, 28, ""},
		{"synth:size=28x300", "train", 0, 0, "size is 28x300, expected 8 to 256"},
		{"synth:size=28x0", "train", 0, 0, "expected sides of 8 to 256"},
		{"synth:size=28x20x3", "train", 0, 0, "expected a side"},
		{"synth:colour=3", "test", 0, 0, `unknown setting "colour"`},
		{"synth:size=1", "test", 0, 0, "size is 1"},
		{"synth", "dev", 0, 0, `no split "dev"`},
		{"synth:seed=2.5", "test", 0, 0, `setting "seed=2.5": expected a whole number`},
		{"checkerboard", "train", 60000, 1, ""},
		{"checkerboard:cols=4,val=30,seed=3", "val", 30, 1, ""},
		{"checkerboard", "test", 10000, 1, ""},
		{"checkerboard:cols=0", "train", 0, 0, "cols is 0, expected 1 to 1024"},
		{"checkerboard:cols=-1", "train", 0, 0, `setting "cols=-1": expected a whole number`},
		{"checkerboard:cols", "train", 0, 0, "expected key=number"},
		{"checkerboard:", "train", 0, 0, "expected key=number"},
		{"checkerboard:cols=2,cols=3", "train", 0, 0, `setting "cols=3": cols is given twice`},
		{"checkerboard:size=3", "train", 0, 0, `unknown setting "size"; known are cols, seed, test, train, val`},
		{"checkerboard:test=0", "test", 0, 0, "test is 0, expected 1 to"},
		{"gauss", "train", 60000, 1, ""},
		{"gauss:dim=3,modes=1,sd=2.5", "val", 10000, 1, ""},
		{"gauss:sd=wide", "train", 0, 0, `setting "sd=wide": expected a number`},
		{"gauss:sd=NaN", "train", 0, 0, "sd is NaN"},
		{"gauss", "dev", 0, 0, `no split "dev"`},
		{"checkerboards", "train", 0, 0, "no such data set"},
		{dir, "train", 1, 2, ""},
		{dir, "test", 0, 0, `no split "test"; it has train`},
		{dir + "x", "train", 0, 0, "no such data set; make it with mkshards"},
		{filepath.Join(dir, "train"), "train", 0, 0, "missing: " + filepath.Join(dir, "train") + " is a part of the data set " + dir + ", so name that"},
		{filepath.Dir(dir), "train", 0, 0, "is not a whole data set; make one with mkshards"},
		{"", "train", 0, 0, "no data set named"},
		{"snyth:size=32", "train", 0, 0, "snyth:size=32: no such data set: did you mean the built-in synth? others are made with mkshards"},
		{"Gauss", "train", 0, 0, "did you mean the built-in gauss?"},
		{"shards/synth", "train", 0, 0, "shards/synth: no such data set; make it with mkshards"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.split, func(t *testing.T) {
			s, err := Open(tt.name, tt.split)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || s.Len() != tt.n || s.Schema().H != tt.size {
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
	for _, name := range []string{"synth", "checkerboard:cols=3", "gauss"} {
		if got, err := Splits(name); err != nil || strings.Join(got, " ") != "test train val" {
			t.Errorf("splits of %s: %v, %v", name, got, err)
		}
	}
	if _, err := Splits("gauss:cols=3"); err == nil {
		t.Error("splits of a set with an unknown setting")
	}
	if got, err := Splits(dir); err != nil || strings.Join(got, " ") != "train" {
		t.Errorf("splits of %s: %v, %v", dir, got, err)
	}
	if _, err := Splits(dir + "x"); err == nil {
		t.Error("splits of a missing directory")
	}
}

// Each setting reaches the data.
func TestSettings(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"checkerboard", "checkerboard:cols=4", "checkerboard:seed=1", "checkerboard:train=59999",
		"gauss", "gauss:dim=3", "gauss:modes=7", "gauss:radius=2", "gauss:sd=1e-3", "gauss:modes=1",
		"synth", "synth:size=64", "synth:size=64x32", "synth:seed=1",
	} {
		s, err := Open(name, "train")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("%s and %s are the same: %s", name, other, s.Digest())
		}
		seen[s.Digest()] = name
		if !BuiltIn(name) || BuiltIn("./"+name) || BuiltIn(name+"s") && !strings.Contains(name, ":") {
			t.Errorf("%s is not told from a directory", name)
		}
	}
}
