package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody runs f as a user who is not root.
func nobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked, so the thread ends with this function
		const nobody = 65534
		if err := unix.Setfsuid(nobody); err != nil { // of this thread alone
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// A folder in which this user may make files, and whose names he may not read, takes files
// and folders.
func TestFolderThatMayNotBeListed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drop")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o333); err != nil {
		t.Fatal(err)
	}
	for d := filepath.Dir(dir); len(d) > len(os.TempDir()); d = filepath.Dir(d) { // t.TempDir lies in a folder of its own
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	nobody(t, func() {
		if _, err := os.ReadDir(dir); err == nil {
			t.Error("the folder can be listed, so this shows nothing")
		}
		if err := Sweep(dir); err != nil {
			t.Errorf("sweep: %v", err)
		}
		if err := Check(filepath.Join(dir, "file")); err != nil {
			t.Errorf("check: %v", err)
		}
		for range 2 { // the second replaces what is there
			if err := WriteBytes(filepath.Join(dir, "file"), []byte("text")); err != nil {
				t.Errorf("file: %v", err)
			}
			f, err := NewFolder(filepath.Join(dir, "folder"))
			if err != nil {
				t.Errorf("folder: %v", err)
				continue
			}
			if err := os.WriteFile(filepath.Join(f.Temporary(), "file"), nil, 0o600); err != nil {
				t.Errorf("folder: %v", err)
			}
			if err := f.Place(); err != nil {
				t.Errorf("folder: %v", err)
			}
		}
		if err := MakeDir(filepath.Join(dir, "made")); err != nil {
			t.Errorf("made: %v", err)
		}
		gone := filepath.Join(dir, "gone")
		if err := errors.Join(os.MkdirAll(filepath.Join(gone, "within"), 0o700), os.WriteFile(filepath.Join(gone, "file"), nil, 0o600), RemoveAll(gone)); err != nil {
			t.Errorf("gone: %v", err)
		}
		if err := RemoveAll(gone); err != nil {
			t.Errorf("gone before: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, filepath.Join(dir, "file"), "text")
	if names := list(t, dir); len(names) != 3 {
		t.Errorf("left %v, want file, folder and made", names)
	}
}

// What another user's killed writer has left, and this one may not remove, is no error.
func TestSweepOfWhatMayNotBeRemoved(t *testing.T) {
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) { // t.TempDir lies in a folder of its own
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(temporaryOf(filepath.Join(dir, "file")), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	nobody(t, func() {
		if _, err := os.ReadDir(dir); err != nil {
			t.Errorf("the folder cannot be listed, so this shows nothing: %v", err)
		}
		if err := Sweep(dir); err != nil {
			t.Error(err)
		}
	})
	if left := list(t, dir); len(left) != 1 {
		t.Errorf("left %v: it was removed, so this shows nothing", left)
	}
}

// A replaced folder that cannot be removed, as one on NFS whose files are open elsewhere, is
// no error: the new one is in its place.
func TestReplacedFolderThatStays(t *testing.T) {
	for name, place := range map[string]func(*Folder) error{"exchanged": (*Folder).Place, "renamed": (*Folder).place} {
		dir := t.TempDir()
		for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) { // t.TempDir lies in a folder of its own
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "set")
		if err := os.MkdirAll(filepath.Join(path, "of root", "file"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(path, "of root"), 0o555); err != nil {
			t.Fatal(err)
		}
		nobody(t, func() {
			f, err := NewFolder(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(filepath.Join(f.Temporary(), "new"), nil, 0o600); err != nil {
				t.Error(err)
			}
			if err := place(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if names := list(t, path); len(names) != 1 || names[0] != "new" {
			t.Errorf("%s: %v in its place, want new", name, names)
		}
		if names := list(t, dir); len(names) != 2 {
			t.Errorf("%s: left %v, want set and the old one, hidden", name, names)
		}
	}
}
