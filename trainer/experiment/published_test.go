package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ebtrain/trainer/experiment/catalogue"
)

// TestPublished: the published report, with its pictures, is that of the published cells.
func TestPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the published report is not made again; other tests make reports of small experiments")
	}
	dir := t.TempDir()
	archives, err := filepath.Glob("published/cells/*.tgz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, a := range archives {
		if out, err := exec.Command("tar", "-C", dir, "-xzf", a).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", a, err, out)
		}
	}
	if err := (app{catalogue: catalogue.All(), stdout: &bytes.Buffer{}}).report([]string{"--all", "--out", dir}); err != nil {
		t.Fatal(err)
	}
	same(t, "published/RESULTS.md", filepath.Join(dir, "RESULTS.md"))
	want, got := names(t, "published/RESULTS"), names(t, filepath.Join(dir, "RESULTS"))
	for name := range want {
		if !got[name] {
			t.Errorf("published/RESULTS/%s is in no report", name)
		}
	}
	for name := range got {
		same(t, filepath.Join("published/RESULTS", name), filepath.Join(dir, "RESULTS", name))
	}
}

// same fails the test if two files differ.
func same(t *testing.T, want, got string) {
	t.Helper()
	w, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	g, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w, g) {
		t.Errorf("%s is not what experiment report --all makes of the published cells: unpack them into one folder, and run it there", want)
	}
}

// names are the names in a folder.
func names(t *testing.T, folder string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, e := range entries {
		all[e.Name()] = true
	}
	return all
}
