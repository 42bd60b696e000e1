package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir takes the lock of a run directory. The kernel frees it when the
// file is closed, also by a kill. Where it cannot be written, otherwise says what to do.
func lockDir(path, otherwise string) (*os.File, error) {
	file := lockFile(path)
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("the run directory %s cannot be written: %w: %s", path, err, otherwise)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%s is in use by another process: wait for its end, or give another --out", path)
	default:
		err = fmt.Errorf("lock %s: %w: the file system must support flock (on Lustre: mount with -o flock or localflock)", file, err)
	}
	return nil, errors.Join(err, f.Close())
}

// InPlace is an error, fs.ErrNotExist, if what has the directory's name is not the one that
// was locked: whatever is written there now is no part of this run. A disk that does not
// say is no such error: whoever writes there hears of it.
func (d *Dir) InPlace() error {
	now, err := os.Stat(lockFile(d.Path()))
	locked, unknown := d.lock.Stat()
	if errors.Is(err, fs.ErrNotExist) || err == nil && unknown == nil && !os.SameFile(now, locked) {
		return &fs.PathError{Op: "find the lock of", Path: d.Path(), Err: fs.ErrNotExist}
	}
	return nil
}

// lockFile is the file that the lock is on.
func lockFile(path string) string { return filepath.Join(path, ".lock") }
