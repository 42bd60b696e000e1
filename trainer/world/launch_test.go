package world

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindLauncher(t *testing.T) {
	t.Setenv("PATH", "")
	dir := t.TempDir()
	self := filepath.Join(dir, "stepbench")
	if _, err := findLauncher("stepbench", self); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("no launcher: %v", err)
	}
	want := filepath.Join(dir, "ddplaunch")
	if err := os.WriteFile(want, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := findLauncher("stepbench", self); got != want || err != nil {
		t.Errorf("found %q, %v; want the one beside", got, err)
	}
}
