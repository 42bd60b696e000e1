// Package atomicfile writes files and folders that are complete or absent.
//
// What is written has a temporary name in the folder it is meant for,
// ".NAME.tmp-PID-RANDOM", and is renamed when it is whole and on the disk; then
// the folder is fsynced, so the name survives a power cut. A reader sees the
// old content or the new, never a mixture.
//
// A process that is killed leaves a temporary, which nothing reads. The next
// writer in that folder removes it: a writer holds a lock (flock) on its
// temporary, which the kernel drops when the process ends in whatever way, so
// the temporaries of a process that lives, in another container too, are never
// taken for those of a dead one. The number of the process is in the name for
// people.
//
// The functions may be called from any goroutine; the last of two concurrent
// writers of one path wins.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Write puts what f writes into the file at path, replacing a file that is
// there. If f or the disk fails, path is as it was and the error says why, of path:
// its temporary is nobody's affair.
func Write(path string, f func(io.Writer) error) error {
	dir := filepath.Dir(path)
	_ = Sweep(dir) // what cannot be removed is no fault of this file
	tmp, err := create(path)
	if err != nil {
		return named(err, path)
	}
	err = named(fill(tmp, path, f), path)
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()), tmp.Close())
	}
	return errors.Join(tmp.Close(), SyncDir(dir)) // the lock goes with Close
}

// create makes and locks the temporary file of path.
func create(path string) (*os.File, error) {
	for {
		tmp, err := os.CreateTemp(filepath.Dir(path), pattern(path))
		if err != nil {
			return nil, err
		}
		if lock(tmp) {
			return tmp, nil
		}
		if err := tmp.Close(); err != nil { // swept before it was locked
			return nil, err
		}
	}
}

// pattern is that of the temporary names of path, for os.CreateTemp.
func pattern(path string) string {
	return "." + filepath.Base(path) + ".tmp-" + strconv.Itoa(os.Getpid()) + "-*"
}

// target writes to the temporary of path, and speaks of path where that fails.
type target struct {
	tmp  *os.File
	path string
}

func (t target) Write(b []byte) (int, error) {
	n, err := t.tmp.Write(b)
	return n, named(err, t.path)
}

// named is err of path, where it is of its temporary.
func named(err error, path string) error {
	if at, ok := err.(*fs.PathError); ok && IsTemporary(filepath.Base(at.Path)) { //nolint:errorlint // what wraps one has said its name
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// fill writes, makes readable to all and syncs tmp, the temporary of path.
func fill(tmp *os.File, path string, f func(io.Writer) error) error {
	if err := f(target{tmp, path}); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	return tmp.Sync()
}

// WriteBytes is Write of b.
func WriteBytes(path string, b []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// MakeDir makes the folder dir, and those that it lies in, as os.MkdirAll does, and makes
// the names of those that it made survive a power cut.
func MakeDir(dir string) error {
	var grew []string // folders that get a new name, the innermost first
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		grew = append(grew, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range grew {
		if err := syncNames(d); err != nil {
			return err
		}
	}
	return nil
}

// SyncPath makes the names of the folder dir, and of all that it lies in as far as the
// path says, survive a power cut, whoever made them.
func SyncPath(dir string) error {
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if err := syncNames(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// syncNames is SyncDir of a folder that may be another's: who may use a folder in it need
// not be able to read it (EACCES), and where the kernel makes the names, as in what autofs
// mounts, there is nothing to sync (EINVAL).
func syncNames(dir string) error {
	if err := SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// SyncDir makes renames and new names in the folder dir survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
