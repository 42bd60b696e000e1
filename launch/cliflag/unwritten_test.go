package cliflag

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A full disk is said with the file and what to do.
func TestUnwritten(t *testing.T) {
	full := os.WriteFile("/dev/full", []byte("x"), 0o600)
	if full == nil {
		t.Fatal("/dev/full took it")
	}
	out := func(err error) error { return Unwritten("--out", "another --out", err) }
	if got, want := out(full).Error(), "--out: write /dev/full: no space left on device: the disk is full: make room there, or give another --out"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if other := errors.New("other"); !errors.Is(out(other), other) || out(other).Error() != "--out: other" {
		t.Errorf("another is %v", out(other))
	}
	if err := out(syscall.EDQUOT); !strings.HasSuffix(err.Error(), ": the disk is full: make room there, or give another --out") {
		t.Errorf("of a quota: %v", err)
	}
	err := Unwritten("--train-classifier", "another file", fmt.Errorf("tensors: %w", &fs.PathError{Op: "write", Path: "c.safetensors", Err: syscall.ENOSPC}))
	if want := "c.safetensors: no space left on device: the disk is full: make room there, or give another file"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}
