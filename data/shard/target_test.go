package shard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What --force may not replace: folders that look like a data set, or that have more
// than one.
func TestForceReplacesDataSetsAlone(t *testing.T) {
	const index = "{\n \"version\": {\"major\": 1},\n \"format\": \"ebtrain-shards\",\n \"checksum\": 3" // the rest is lost
	shard := "train/shard-00000.safetensors.zst"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // of the error; "" for none
	}{
		{"damaged", map[string]string{"index.json": index, "vocabulary.txt": "", shard: "torn", "test/": ""}, ""},
		{"somebody's index", map[string]string{"index.json": `{"name":"my site"}`, "thesis.txt": "all of it"}, "index.json is not that of a data set"},
		{"another format", map[string]string{"index.json": `{"inner":{"format":"ebtrain-shards"},"format":"else"}`}, "index.json is not that of a data set"},
		{"no JSON", map[string]string{"index.json": "format ebtrain-shards"}, "index.json is not that of a data set"},
		{"empty index", map[string]string{"index.json": ""}, "index.json is not that of a data set"},
		{"no index", map[string]string{"thesis.txt": "all of it"}, "it has no index.json"},
		{"a folder for an index", map[string]string{"index.json/": ""}, "index.json is not that of a data set"},
		{"a file more", map[string]string{"index.json": index, shard: "", "thesis.txt": "all of it"}, "thesis.txt"},
		{"a folder more", map[string]string{"index.json": index, shard: "", "notes/a.txt": "all of it"}, filepath.Join("notes", "a.txt")},
		{"a file among shards", map[string]string{"index.json": index, shard: "", "train/shard-1.zip": ""}, filepath.Join("train", "shard-1.zip")},
		{"a folder like a shard", map[string]string{"index.json": index, shard + "/": ""}, filepath.FromSlash(shard)},
		{"a folder no split has", map[string]string{"index.json": index, "my notes/": ""}, "my notes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			lay(t, dir, tt.files)
			err := checkTarget(dir, true)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "never replaced") {
				t.Errorf("%v, want %q, and that it is never replaced", err, tt.want)
			}
			if _, err := Create(dir, Options{Schema: tiny, Force: true}); err == nil {
				t.Error("Create would replace it")
			}
			if err := checkTarget(dir, false); err == nil || strings.Contains(err.Error(), "--force") {
				t.Errorf("without force: %v, want an error that does not advise it", err)
			}
		})
	}
}

// lay makes files, and folders where a name ends in a slash.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What appears at the place while a set is written is not replaced either.
func TestPlaceTakenMeanwhile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	w, err := Create(dir, Options{Schema: tiny, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "train", sample(0), 0); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, map[string]string{"thesis.txt": "all of it"})
	if _, err := w.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "never replaced") {
		t.Errorf("%v, want that it is never replaced", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "thesis.txt")); err != nil || string(b) != "all of it" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

// Places that no rename could fill are refused before the work.
func TestPlacesThatCannotBeReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	const point = "/proc" // a mount point wherever tests run
	for dir, want := range map[string]string{
		".":              ".: cannot be replaced as a whole: give the name of a folder in it",
		"a/..":           "give the name of a folder in it",
		"../..":          "give the name of a folder in it",
		"/":              "give the name of a folder in it",
		point:            "/proc: is a mount point, which cannot be replaced: give the name of a folder in it",
		point + "/self/": "", // not refused as a mount point; the rest says why
	} {
		w, err := Create(dir, Options{Schema: tiny, Force: true})
		if err == nil {
			t.Errorf("%s: not refused", dir)
			_ = w.Abort() // the error is what matters
			continue
		}
		if !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "mount point") {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
