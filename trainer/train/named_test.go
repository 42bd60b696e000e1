package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data/dataset"
	"ebtrain/data/importer"
)

// TestWarnNames: names that are not UTF-8 are warned of, a line each, and others are not.
func TestWarnNames(t *testing.T) {
	var said strings.Builder
	r := &recorder{info: runInfo{flags: map[string]string{"data": "caf\xe9", "from": "café", "out": "\xff"}}, log: slog.New(slog.NewTextHandler(&said, nil))}
	r.warnNames()
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "flag=--data") || !strings.Contains(text, `caf\\xe9`) {
		t.Errorf("want one line, of --data, got %q", text)
	}
}

// TestNameNotUTF8: a data set whose name config.json cannot hold is warned of, and the run
// goes on with it where it is said again.
func TestNameNotUTF8(t *testing.T) {
	dir := t.TempDir()
	out, plain, odd := filepath.Join(dir, "run"), filepath.Join(dir, "plain"), filepath.Join(dir, "caf\xe9")
	src, err := dataset.Open("checkerboard:train=32", "train")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Run(t.Context(), importer.Copy([]importer.Named{{Split: "train", Source: src}}), importer.Options{Out: plain}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(plain, odd); err != nil {
		t.Skipf("this file system takes no name that is not UTF-8 (%v); TestWarnNames tries the warning without one", err)
	}
	try := func(args ...string) (string, error) {
		var o, e strings.Builder
		err := run(t.Context(), append(args, "--out", out, "--samples", "0"), nil, &o, &e)
		return e.String(), err
	}
	const want = `cannot hold it: a resume and evaluate have to be told it again, or give a link to it: flag --data, name "`
	said, err := try("--preset", "cd-board", "--data", odd, "--batch", "2", "--steps", "2")
	if err != nil || strings.Count(said, want) != 1 || !strings.Contains(said, `caf\xe9`) {
		t.Errorf("want one warning, got %v\n%s", err, said)
	}
	if said, err := try("--resume", "--data", plain, "--steps", "3"); err != nil || strings.Contains(said, "warning") {
		t.Errorf("with a name that it can hold: %v\n%s", err, said)
	}
	if said, err := try("--resume", "--data", odd, "--steps", "4"); err != nil || !strings.Contains(said, want) {
		t.Errorf("told again: %v\n%s", err, said)
	}
}
