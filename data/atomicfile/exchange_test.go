package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A folder that is replaced is there at every moment, the old or the new: whoever opens it
// meanwhile, or is left with it after a kill, has one of them.
func TestReplacedFolderIsAlwaysThere(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, d := range []string{a, b} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("the file system of %s cannot exchange folders: %v", dir, err)
	}
	var over atomic.Bool
	watched := make(chan error)
	go func() {
		var err error
		for err == nil && !over.Load() {
			_, err = os.Stat(a)
		}
		watched <- err
	}()
	for range 200 {
		f, err := NewFolder(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Place(); err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	if err := <-watched; err != nil {
		t.Error(err)
	}
	if names := list(t, dir); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("left %v, want a and b", names)
	}
}

// A folder whose place cannot be synced is taken back, by whatever way it came there: who is
// told that it failed finds what was there before.
func TestFolderThatCannotBeSynced(t *testing.T) {
	boom := errors.New("boom")
	for name, place := range map[string]func(*Folder) error{"Place": (*Folder).Place, "place": (*Folder).place} {
		for _, before := range []bool{true, false} {
			dir := t.TempDir()
			path, want := filepath.Join(dir, "set"), []string{}
			if before {
				want = []string{"set"}
				if err := errors.Join(os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(path, "old"), nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			f, err := NewFolder(path)
			if err != nil {
				t.Fatal(err)
			}
			f.sync = func(string) error {
				if names := list(t, path); !slices.Equal(names, []string{"new"}) {
					t.Errorf("%s: it holds %v as it is synced, want new", name, names)
				}
				return boom
			}
			if err := os.WriteFile(filepath.Join(f.Temporary(), "new"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := place(f); !errors.Is(err, boom) {
				t.Errorf("%s: %v, want %v", name, err, boom)
			}
			if names := list(t, dir); !slices.Equal(names, want) {
				t.Errorf("%s: left %v, want %v", name, names, want)
			}
			if before {
				if names := list(t, path); !slices.Equal(names, []string{"old"}) {
					t.Errorf("%s: the folder holds %v, want old", name, names)
				}
			}
		}
	}
}

// Where folders cannot be exchanged the old one moves out of the way, and is removed.
func TestReplacedFolderByRenames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "set")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "old"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Temporary(), "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.place(); err != nil {
		t.Fatal(err)
	}
	if names := list(t, path); !slices.Equal(names, []string{"new"}) {
		t.Errorf("the folder holds %v, want new", names)
	}
	if names := list(t, dir); !slices.Equal(names, []string{"set"}) {
		t.Errorf("left %v, want set", names)
	}
}
