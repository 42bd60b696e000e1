package ckpt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// A checkpoint survives a power cut when Write has returned, with the folders it lies in;
// its name never comes before its files. So do one that takes the place of another, and
// what Prune leaves.
func TestSurvivesPowerCut(t *testing.T) {
	write := func(dir string, steps ...int64) error {
		for _, step := range steps {
			s, groups := sample(step)
			if _, err := Write(dir, s, groups); err != nil {
				return err
			}
		}
		return nil
	}
	for _, tt := range []struct {
		name string
		do   func(dir string) error
	}{
		{"new", func(dir string) error { return write(dir, 1) }},
		{"replaced", func(dir string) error { return write(dir, 1, 1) }},
		{"pruned", func(dir string) error { return errors.Join(write(dir, 1, 2), Prune(dir, 1, 2)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			powercut.Survives(t, func(dir string) error { return tt.do(filepath.Join(dir, "run", "ckpt")) })
		})
	}
}

// What a killed writer has left, and nobody can remove, is not in the way of the same step.
func TestLeftoversThatStay(t *testing.T) {
	dir := t.TempDir()
	path := mustWrite(t, dir, 5)
	for _, prefix := range []string{tmpPrefix, oldPrefix} { // as by names without letters of chance
		if err := os.MkdirAll(filepath.Join(dir, prefix+Name(5), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, groups := sample(5)
	tmp := hidden(tmpPrefix, path)
	if err := errors.Join(fill(tmp, s, groups), publish(tmp, path)); err != nil {
		t.Error(err)
	}
	if a, b := hidden(oldPrefix, path), hidden(oldPrefix, path); a == b {
		t.Errorf("two hidden names are both %s", a)
	}
	if got := names(t, dir); got != ".old-step-00000005 .tmp-step-00000005 step-00000005" {
		t.Errorf("left in the folder: %s", got)
	}
}

// One that cannot be put in the place of another leaves that where it is.
func TestOneThatCannotBeReplaced(t *testing.T) {
	dir := t.TempDir()
	path := mustWrite(t, dir, 5)
	if err := publish(filepath.Join(dir, tmpPrefix+"gone"), path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that there is none to put there", err)
	}
	if _, _, err := Read(path); err != nil {
		t.Errorf("the old one: %v", err)
	}
	if got := names(t, dir); got != Name(5) {
		t.Errorf("left in the folder: %s", got)
	}
}
