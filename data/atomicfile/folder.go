package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// oldSuffix is added to a temporary name for the folder that it replaces,
// between the two renames of place.
const oldSuffix = ".old"

// Folder is a folder that is being written under a temporary name. Exactly one
// of Place and Discard ends it.
type Folder struct {
	path, tmp string
	lock      *os.File
	sync      func(dir string) error // SyncDir
}

// NewFolder makes the temporary folder of path, beside it.
func NewFolder(path string) (*Folder, error) {
	for {
		tmp := temporaryOf(path)
		err := os.Mkdir(tmp, 0o777) // as in create
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := os.Open(tmp)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept before it was locked
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(tmp))
		}
		locked, err := lock(d)
		if locked {
			return &Folder{path: path, tmp: tmp, lock: d, sync: SyncDir}, nil
		}
		if err := errors.Join(err, ignoreAbsent(os.Remove(tmp)), d.Close()); err != nil { // as in create
			return nil, err
		}
	}
}

// Temporary is the folder to write into.
func (f *Folder) Temporary() string { return f.tmp }

// Place gives the folder its name. A folder that is there changes places with it, so that
// at no moment, nor after a kill, there is none, and is removed at the end, as far as it can
// be: what stays of it is hidden, and swept later. The files must have been synced. On error
// what was there is there again, as far as the disk lets it.
func (f *Folder) Place() error {
	if f.exchange() != nil {
		return f.place() // where nothing is to be replaced, or the file system cannot
	}
	if err := f.sync(filepath.Dir(f.path)); err != nil {
		return f.undone(err, f.exchange)
	}
	_ = RemoveAll(f.tmp)
	return f.lock.Close()
}

// exchange has the folder and the one that is there change places.
func (f *Folder) exchange() error {
	return unix.Renameat2(unix.AT_FDCWD, f.tmp, unix.AT_FDCWD, f.path, unix.RENAME_EXCHANGE)
}

// undone is err once the folder is taken back from its place by undo, and removed: who is told
// that it failed is not left with it. Where undo fails, too, both are left as they are.
func (f *Folder) undone(err error, undo func() error) error {
	if failed := undo(); failed != nil {
		return errors.Join(err, failed, f.lock.Close())
	}
	return errors.Join(err, f.Discard())
}

// place gives the folder its name by renames. A folder that is there is moved out of the
// way first, back if that does not work, and removed at the end.
func (f *Folder) place() error {
	old := f.tmp + oldSuffix
	err := os.Rename(f.path, old)
	replaced := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.Discard())
	}
	if err := os.Rename(f.tmp, f.path); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, f.path))
		}
		return errors.Join(err, f.Discard())
	}
	if err := f.sync(filepath.Dir(f.path)); err != nil {
		return f.undone(err, func() error {
			err := os.Rename(f.path, f.tmp)
			if err == nil && replaced {
				err = os.Rename(old, f.path)
			}
			return err
		})
	}
	if replaced {
		_ = RemoveAll(old)
	}
	return f.lock.Close()
}

// RemoveAll is os.RemoveAll of a folder in one that may not be listed, which os.RemoveAll opens.
func RemoveAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreAbsent(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return ignoreAbsent(os.Remove(dir))
}

// Discard removes the folder and all that is in it.
func (f *Folder) Discard() error { return errors.Join(RemoveAll(f.tmp), f.lock.Close()) }
