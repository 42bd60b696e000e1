package atomicfile

import (
	"os"
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// What is written survives a power cut when the function has returned, and a new name
// never comes before what it is of.
func TestWriteSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		path := filepath.Join(dir, "a")
		if err := WriteBytes(path, []byte("old")); err != nil {
			return err
		}
		return WriteBytes(path, []byte("new"))
	})
}

// So do the names of folders, all that are new.
func TestMakeDirSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		return MakeDir(filepath.Join(dir, "a", "b", "c"))
	})
}

// And those that somebody else has made, once they are synced.
func TestSyncPathSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		path := filepath.Join(dir, "a", "b", "c")
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		return SyncPath(path)
	})
}

// And a folder that takes the place of another, whose files the caller has synced.
func TestFolderSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		path := filepath.Join(dir, "a")
		if err := MakeDir(path); err != nil {
			return err
		}
		f, err := NewFolder(path)
		if err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(f.Temporary(), "x"), 0o755); err != nil {
			return err
		}
		if err := SyncDir(f.Temporary()); err != nil {
			return err
		}
		return f.Place()
	})
}
