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
// Who may read and write what is written is what the user's umask says, as of any
// file. Only a file is replaced: a path that names a pipe, a device or a folder is
// refused, and a link is followed to the file that it names.
//
// The functions may be called from any goroutine; the last of two concurrent
// writers of one path wins.
package atomicfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Write puts what f writes into the file at path, replacing a file that is
// there. If f or the disk fails, path is as it was and the error says why, of path:
// its temporary is nobody's affair. But where it is only at the end that the folder cannot be
// synced, the file is in its place, and a power cut may take it.
func Write(path string, f func(io.Writer) error) error {
	file, err := follow(path)
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	dir := filepath.Dir(file)
	_ = Sweep(dir) // what cannot be removed is no fault of this file
	tmp, err := create(file)
	if err != nil {
		return named(err, path)
	}
	err = named(fill(tmp, path, f), path)
	if err == nil {
		err = named(os.Rename(tmp.Name(), file), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()), tmp.Close())
	}
	return errors.Join(named(tmp.Close(), path), syncDirOf(path, dir)) // the lock goes with Close
}

// syncDirOf is SyncDir of the folder that the file at path lies in, and speaks of path.
func syncDirOf(path, dir string) error {
	if err := SyncDir(dir); err != nil {
		return &fs.PathError{Op: "sync the folder of", Path: path, Err: cause(err)}
	}
	return nil
}

// create makes and locks the temporary file of path. It is made as any file is, and not by
// os.CreateTemp, whose files are their owner's alone: so the kernel does as the umask says.
func create(path string) (*os.File, error) {
	for {
		tmp, err := os.OpenFile(temporaryOf(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		locked, err := lock(tmp)
		if locked {
			return tmp, nil
		}
		// It was swept before it was locked, or nobody can say.
		if err := errors.Join(err, ignoreAbsent(os.Remove(tmp.Name())), tmp.Close()); err != nil {
			return nil, err
		}
	}
}

// temporaryOf is a temporary name of path, another at each call.
func temporaryOf(path string) string {
	name := fmt.Sprintf(".%s.tmp-%d-%d", filepath.Base(path), os.Getpid(), rand.Uint32())
	return filepath.Join(filepath.Dir(path), name)
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
	if at, ok := err.(*os.LinkError); ok && IsTemporary(filepath.Base(at.Old)) { //nolint:errorlint // likewise
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// fill writes and syncs tmp, the temporary of path.
func fill(tmp *os.File, path string, f func(io.Writer) error) error {
	if err := f(target{tmp, path}); err != nil {
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
// the names of those that it made survive a power cut. It names a link that is in the way,
// since what it leads to is not there: of that os.MkdirAll says "file exists".
func MakeDir(dir string) error {
	var grew []string // folders that get a new name, the innermost first
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		grew = append(grew, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cmp.Or(Dangling(dir), err)
	}
	for _, d := range grew {
		if err := SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// SyncPath makes the names of the folder dir, and of all that it lies in as far as the
// path says, survive a power cut, whoever made them.
func SyncPath(dir string) error {
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if err := SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes renames and new names in the folder dir survive a power cut. One that this
// user may not read is left to the kernel, which writes it out in its own time: who may
// make names in a folder need not be able to read it, and only what is read can be synced. So
// is one of a file system that cannot sync folders, as those that virtual machines share with
// their hosts: such have names where they are made, or not at all.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
