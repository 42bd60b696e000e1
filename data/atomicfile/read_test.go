package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What has a file's name and is none is told of at once, and not waited for.
func TestReadOdd(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700), os.Symlink("pipe", at("to-pipe")), os.Symlink(os.DevNull, at("device")), os.WriteFile(at("large"), make([]byte, 1025), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pipe": "is a pipe", "to-pipe": "is a pipe", "folder": "is a folder", "device": "is a device",
		"large": "has more than 1.0 KiB",
	} {
		_, err := Read(at(name), 1024)
		odd, ok := errors.AsType[*OddError](err)
		if !ok || odd.Is != want || err.Error() != at(name)+" "+want+", where a file is expected" {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := Read(at("none"), 1024); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
}

// A file is read whole, also through a link and when it is as large as may be.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	want := bytes.Repeat([]byte("ab"), 512)
	if err := errors.Join(WriteBytes(file, want), os.Symlink("a", file+"-link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "-link"} {
		if got, err := Read(path, 1024); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	if open := opened(t, file); open != 0 {
		t.Errorf("%d of it are still open", open)
	}
}

// opened is how often this process has a file open.
func opened(t *testing.T, file string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == file {
			n++
		}
	}
	return n
}
