package shard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An index lists so many of what was left out, and counts the rest.
func TestSkippedAreBounded(t *testing.T) {
	for n, more := range map[int]uint64{maxSkipped: 0, maxSkipped + 3: 3} {
		dir := filepath.Join(t.TempDir(), "set")
		w, err := Create(dir, Options{Schema: tiny})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			w.Skip(Skipped{"train", fmt.Sprint(i), "damaged"})
		}
		if err := w.Add(t.Context(), "train", sample(0), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		x, err := ReadIndex(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Skipped) != maxSkipped || x.Skipped[maxSkipped-1].Name != fmt.Sprint(maxSkipped-1) || x.SkippedMore != more || x.LeftOut() != uint64(n) {
			t.Errorf("of %d: %d listed and %d more, %d in all", n, len(x.Skipped), x.SkippedMore, x.LeftOut())
		}
	}
}

// A set whose index nothing could read is not written.
func TestIndexOverTheLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	w, err := Create(dir, Options{Schema: tiny})
	if err != nil {
		t.Fatal(err)
	}
	w.most = 2000
	w.Skip(Skipped{"train", strings.Repeat("a", 2000), "damaged"})
	if err := w.Add(t.Context(), "train", sample(0), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "its index would have ") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
