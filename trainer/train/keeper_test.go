package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/rundir"
)

// TestNoteFailed: who was asked to stop has not failed, and where the note cannot be written
// for the reason that the run failed for, that is said once.
func TestNoteFailed(t *testing.T) {
	d, err := rundir.Create(filepath.Join(t.TempDir(), "a"), rundir.Config{Program: "train"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // it is the test's
	boom := errors.New("boom")
	for _, end := range []error{nil, cliflag.ErrStopped, boom} {
		if err := noteFailed(d, end); err != end { //nolint:errorlint // it itself
			t.Errorf("%v became %v", end, err)
		}
		if noted := d.Config().Failed != ""; noted != errors.Is(end, boom) {
			t.Errorf("of %v it is noted: %v", end, noted)
		}
	}
	if err := errors.Join(os.Remove(d.ConfigFile()), os.Symlink("config.json", d.ConfigFile())); err != nil {
		t.Fatal(err)
	}
	loop := &fs.PathError{Op: "write", Path: "metrics.jsonl", Err: syscall.ELOOP}
	if err := noteFailed(d, loop); err != loop { //nolint:errorlint // it itself
		t.Errorf("the reason twice: %v", err)
	}
	if err := noteFailed(d, boom); !errors.Is(err, boom) || !errors.Is(err, syscall.ELOOP) {
		t.Errorf("two reasons: %v", err)
	}
}

// TestMark: a mark is there until it is forgotten, and takes the place of those that ranks
// have left which were killed. Nothing else in the directory is touched.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".seen-0011223344556677", ".lock", "config.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	mark, forget, err := leaveMark(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 3 || filepath.Join(dir, got[1]) != markFile(dir, mark) || len(mark) != 8 {
		t.Errorf("with a mark %x the directory has %v", mark, got)
	}
	if err := forget(); err != nil {
		t.Error(err)
	}
	if got := names(); len(got) != 2 {
		t.Errorf("afterwards the directory has %v", got)
	}
}
