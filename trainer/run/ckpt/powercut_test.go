package ckpt

import (
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// A checkpoint survives a power cut when Write has returned, with the folders it lies in;
// its name never comes before its files. One that is replaced, and Prune, change nothing
// about that.
func TestSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		dir = filepath.Join(dir, "run", "ckpt")
		for _, step := range []int64{1, 1, 2} {
			s, groups := sample(step)
			if _, err := Write(dir, s, groups); err != nil {
				return err
			}
		}
		return Prune(dir, 1, 2)
	})
}
