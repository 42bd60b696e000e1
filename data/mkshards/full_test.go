package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is full is said so of the file that was to be, with what helps; its
// temporary is not spoken of, and nothing is left.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs root, to mount a disk that is soon full: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	out := filepath.Join(disk, "out")
	code, _, _, err := try(t, "synth", "--size", "32", "--train", "2000", "--out", out)
	want := regexp.MustCompile(`^` + out + `/(train|val|test)/shard-00000\.safetensors\.zst: no space left on device: make room there, or choose another place$`)
	if code != 1 || !want.MatchString(err.Error()) {
		t.Errorf("code %d, %v, want %v", code, err, want)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
