package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("old"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("nowhere", at("link")), os.Symlink("loop", at("loop"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("link"):      "it is a link to nowhere, which is not there: give another name",
		at("link/file"): at("link") + " is a link to nowhere, which is not there: make that first",
		at("link/d/e"):  at("link") + " is a link to nowhere, which is not there: make that first",
		at("loop/file"): "too many levels of symbolic links: give another name",
		at("new"):       "",
		at("old"):       "",
		at("folder"):    "it is a folder: give the name of a file in it",
		at("none/file"): "there is no folder " + at("none") + ": make it first",
		at("old/file"):  at("old") + " is a file, not a folder",
		at("old/a/b"):   "not a directory: give another name",
		"/proc/file":    "no file can be made there: no such file or directory",
	} {
		err := Check(path)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 4 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if b, err := os.ReadFile(at("old")); err != nil || string(b) != "kept" {
		t.Errorf("the old file holds %q, %v", b, err)
	}
}
