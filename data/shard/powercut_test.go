package shard

import (
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// A data set survives a power cut when Commit has returned, with the folders that were
// made for it, and so does one that takes the place of another: its name never comes
// before its files.
func TestSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		dir = filepath.Join(dir, "shards", "mine")
		write(t, dir, 9, Options{})
		write(t, dir, 10, Options{Force: true})
		return nil
	})
}
