package dataset

import (
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data/safetensors"
	"ebtrain/data/shard"

	"ebtrain/data"
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
		{"synth:size=x", "test", 0, 0, "expected key=number"},
		{"synth:colour=3", "test", 0, 0, `unknown setting "colour"`},
		{"synth:size=1", "test", 0, 0, "size 1"},
		{"synth", "dev", 0, 0, `no split "dev"`},
		{dir, "train", 1, 2, ""},
		{dir, "test", 0, 0, `no split "test"; it has train`},
		{dir + "x", "train", 0, 0, "no such data set; make it with mkshards"},
		{"", "train", 0, 0, "no data set named"},
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
	if got, err := Splits("synth"); err != nil || strings.Join(got, " ") != "test train val" {
		t.Errorf("splits of synth: %v, %v", got, err)
	}
	if got, err := Splits(dir); err != nil || strings.Join(got, " ") != "train" {
		t.Errorf("splits of %s: %v, %v", dir, got, err)
	}
	if _, err := Splits(dir + "x"); err == nil {
		t.Error("splits of a missing directory")
	}
}
