package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mount is a disk of so many bytes at a folder.
func mount(t *testing.T, at string, bytes int) {
	t.Helper()
	if err := unix.Mount("none", at, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("needs root, to mount a disk of its own: %v; TestTooLarge and TestOneThatCannotBeReplaced are for all", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// On a disk of any size a checkpoint is whole, or there is none and Write says so: whichever
// of its files is the first that does not fit.
func TestFullDisk(t *testing.T) {
	const most = 64
	last := false // whether it was state.json that did not fit
	for pages := 1; ; pages++ {
		if pages > most {
			t.Fatalf("no checkpoint fits into %d pages", most)
		}
		disk := t.TempDir()
		mount(t, disk, pages*os.Getpagesize())
		s, groups := sample(3)
		path, err := Write(disk, s, groups)
		if err == nil {
			if _, _, err := Read(path); err != nil {
				t.Errorf("%d pages: %v", pages, err)
			}
			break
		}
		if left := names(t, disk); left != "" || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room and resume") {
			t.Errorf("%d pages: %v, and %q is left", pages, err, left)
		}
		last = last || strings.Contains(err.Error(), stateFile)
	}
	if !last {
		t.Errorf("%s, which is written last, always fitted", stateFile)
	}
}

// A file that may not become as large as it is to be is an error, and leaves nothing.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	s, groups := sample(3)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := Write(dir, s, groups)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); left != "" || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("%v, and %q is left", err, left)
	}
}

// What cannot be moved out of its way is an error, and what was to come in its place is gone.
func TestPlaceThatStays(t *testing.T) {
	dir := t.TempDir()
	s, groups := sample(3)
	path := filepath.Join(dir, Name(s.Step))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	mount(t, path, 1<<20)
	if _, err := Write(dir, s, groups); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("%v, want that it is in use", err)
	}
	if got := names(t, dir); got != Name(s.Step) {
		t.Errorf("left in the folder: %s", got)
	}
}
