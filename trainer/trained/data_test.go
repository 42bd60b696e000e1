package trained

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/data/dataset"
	"ebtrain/data/importer"
	"ebtrain/trainer/run/rundir"
)

// imported makes a data set of a built-in one at dir, in place of what is there, and gives its
// digest.
func imported(t *testing.T, of, dir string) string {
	t.Helper()
	src, err := dataset.Open(of, "train")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Run(t.Context(), importer.Copy([]importer.Named{{Split: "train", Source: src}}), importer.Options{Out: dir, Force: true}); err != nil {
		t.Fatal(err)
	}
	if src, err = dataset.Open(dir, "train"); err != nil {
		t.Fatal(err)
	}
	return src.Digest()
}

// The data of a run are those that it was trained on, not what lies under the same name where
// it is asked for.
func TestDataOfRun(t *testing.T) {
	root := t.TempDir()
	mine, others := filepath.Join(root, "mine"), filepath.Join(root, "others")
	const name, path = "shards/a", "run"
	s := board(t, 1)
	s.DataDigest = imported(t, "synth:seed=1,train=16", filepath.Join(mine, name))
	imported(t, "synth:seed=2,train=16", filepath.Join(others, name))
	t.Chdir(mine)
	dir, err := rundir.Create(path, rundir.Config{Program: "train", World: 1, Flags: map[string]string{"data": name}}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(path string) *Run {
		t.Helper()
		c, err := rundir.ReadConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		return &Run{Path: path, Config: c, Settings: s}
	}
	find := func(r *Run, want, problem string) {
		t.Helper()
		got, err := r.Data()
		if (err == nil) != (problem == "") || err == nil && got != want || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("found %q, %v; want %q, %q", got, err, want, problem)
		}
	}
	find(read(path), name, "")
	t.Chdir(others)
	r := read("../mine/run")
	find(r, filepath.Join(mine, name), "")
	older := *r
	older.Config.Folder = "" // as a run has that was begun before it was noted
	const different = "shards/a (split train) does not hold the samples that the run in ../mine/run was trained on"
	find(&older, "", different)
	t.Chdir(root)
	find(r, filepath.Join(mine, name), "")
	find(&older, "", "shards/a: no such data set; make it with mkshards; if the data of the run in ../mine/run have moved, say where they are with --data")

	imported(t, "synth:seed=3,train=16", filepath.Join(mine, name)) // as mkshards --force does
	t.Chdir(mine)
	find(r, "", different)
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	find(r, "", "no such data set")
}
