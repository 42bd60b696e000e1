package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe, a device or a folder is never replaced by a file, whether it is named itself or by
// a link.
func TestOnlyFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"stdout": fmt.Sprintf("/proc/self/fd/%d", w.Fd()), "null": os.DevNull, "link": "fifo", "above": ".", "gone": "nothing"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"fifo":   "it is a pipe, which no file may replace",
		"stdout": "it is a pipe, which no file may replace",
		"null":   "it is a device, which no file may replace",
		"link":   "it is a pipe, which no file may replace",
		"above":  "it is a folder, which no file may replace",
		"gone":   "it is a link to nothing, which is not there",
	} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		checked := want + ": give another name"
		if name == "above" {
			checked = "it is a folder: give the name of a file in it"
		}
		if err := Check(at(name)); err == nil || err.Error() != checked {
			t.Errorf("%s: checked: %v, want %s", name, err, checked)
		}
		if err := WriteBytes(at(name), []byte("text")); err == nil || err.Error() != "write "+at(name)+": "+want {
			t.Errorf("%s: written: %v, want %s", name, err, want)
		}
		if is, streams := isStream(at(name)), name != "above" && name != "gone"; is != streams {
			t.Errorf("%s is a stream: %v, want %v", name, is, streams)
		}
		if after, err := os.Lstat(at(name)); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("%s is another: %v, %v", name, after, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Where a link names a file, that file is replaced, and the link stays.
func TestLinksAreFollowed(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	file, link := filepath.Join(other, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Check(link), WriteBytes(link, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link is to %q, %v", to, err)
	}
	want(t, file, "new")
	for _, d := range []string{dir, other} {
		if names := list(t, d); len(names) != 1 || strings.HasPrefix(names[0], ".") {
			t.Errorf("left %v", names)
		}
	}
	if isStream(link) || isStream(filepath.Join(dir, "none")) {
		t.Error("a file, or none, is a stream")
	}
}
