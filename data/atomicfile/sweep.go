package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// temporary is what the names of temporaries look like, with both numbers as Go
// writes them; the first group is the name they are meant for. A name that is only
// alike, as .notes.tmp-2024, is somebody's.
var temporary = regexp.MustCompile(`^\.(.+)\.tmp-[1-9][0-9]{0,9}-(?:0|[1-9][0-9]{0,9})(\` + oldSuffix + `)?$`)

// IsTemporary says whether name is that of a temporary of this package.
func IsTemporary(name string) bool { return temporary.MatchString(name) }

// Sweep removes the temporaries in the folder dir whose writers have ended. A
// writer that was killed just when it replaced a folder gets the old one back
// in its place. What this user may not open or remove is left alone, and a
// folder that is not there has none.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return ignoreAbsent(err)
	}
	var errs []error
	for _, e := range entries {
		m := temporary.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if m[2] != "" {
			err = sweepOld(path, filepath.Join(dir, m[1]))
		} else {
			err = sweep(path)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweep removes a temporary unless its writer lives.
func sweep(path string) error {
	f, err := openLocked(path)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(path), f.Close())
}

// sweepOld removes the folder old, which was to be replaced at path, or puts it
// back if its writer has ended before the new one was there.
func sweepOld(old, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return os.RemoveAll(old)
	}
	f, err := openLocked(strings.TrimSuffix(old, oldSuffix))
	if err != nil {
		return err
	}
	if f == nil { // there is no new one, or its writer lives and is about to place it
		if _, err := os.Lstat(strings.TrimSuffix(old, oldSuffix)); err == nil {
			return nil
		}
		return putBack(old, path)
	}
	return errors.Join(putBack(old, path), f.Close())
}

// putBack moves old back to path, unless the new one has been placed there meanwhile: then
// its writer lives, and removes old itself.
func putBack(old, path string) error {
	err := ignoreAbsent(os.Rename(old, path))
	if errors.Is(err, fs.ErrExist) { // ENOTEMPTY, too
		return nil
	}
	return err
}

// openLocked opens a temporary and takes its lock; nil if it is gone, if its
// writer has the lock, or if the file system knows no locks.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil, f.Close()
	}
	return f, nil
}

// lock locks a new temporary; false if it was swept before, or if that cannot be told,
// which is an error. On a file system without locks it is not locked, and nothing is swept
// there.
func lock(f *os.File) (bool, error) {
	_ = flock(f, syscall.LOCK_EX)
	now, err := os.Lstat(f.Name())
	if err != nil {
		return false, ignoreAbsent(err)
	}
	made, err := f.Stat()
	return err == nil && os.SameFile(now, made), err
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
