package main

import (
	"os"
	"path/filepath"
	"testing"
)

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
