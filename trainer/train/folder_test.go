package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data/dataset"
	"ebtrain/data/importer"
)

// A run goes on from another folder than it was started in, with the same data, though their
// path was relative; and then from any. So does one that begins with its weights.
func TestResumeFromAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"first", "second", "third"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	src, err := dataset.Open("synth:train=32", "train")
	if err != nil {
		t.Fatal(err)
	}
	set := importer.Copy([]importer.Named{{Split: "train", Source: src}})
	if _, err := importer.Run(t.Context(), set, importer.Options{Out: filepath.Join(dir, "first", "shards")}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	t.Chdir(filepath.Join(dir, "first"))
	if _, _, err := small(t, out, "--data", "shards"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(dir, "second"))
	more := filepath.Join(dir, "more")
	if err := run(t.Context(), []string{"--from", out, "--steps", "1", "--out", more}, nil, io.Discard, io.Discard); err != nil {
		t.Errorf("begun with its weights: %v", err)
	}
	for i, from := range []string{"second", "third"} {
		t.Chdir(filepath.Join(dir, from))
		if err := resume(t, fmt.Sprintf("--out %s --steps %d", out, 3+i)); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "first")); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--out "+out+" --steps 5"); err == nil || !strings.Contains(err.Error(), "no such data set; make it with mkshards; if the data of the run in "+out+" have moved") {
		t.Errorf("without the data: %v", err)
	}
}
