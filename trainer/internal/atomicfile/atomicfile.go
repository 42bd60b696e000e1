// Package atomicfile writes files that are complete or absent.
//
// A file is written under a temporary name in its own folder, fsynced, and
// renamed; then the folder is fsynced, so the name survives a power cut. A
// reader sees the old content or the new, never a mixture. A process that is
// killed leaves at most a file called ".tmp-NAME-*", which nothing reads.
//
// The functions may be called from any goroutine; the last of two concurrent
// writers of one path wins.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write puts what f writes into the file at path, replacing a file that is
// there. If f or the disk fails, path is as it was and the error says why.
func Write(path string, f func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	tmp, err := os.CreateTemp(dir, ".tmp-"+name+"-*")
	if err != nil {
		return err
	}
	if err := fill(tmp, f); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return SyncDir(dir)
}

// fill writes, makes readable to all, syncs and closes tmp.
func fill(tmp *os.File, f func(io.Writer) error) error {
	err := f(tmp)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	return errors.Join(err, tmp.Close())
}

// WriteBytes is Write of b.
func WriteBytes(path string, b []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Check reports, before the work is done, a folder in which Write could not put
// a file. It leaves nothing behind.
func Check(dir string) error {
	tmp, err := os.CreateTemp(dir, ".tmp-check-*")
	if err != nil {
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}

// SyncDir makes renames and new names in the folder dir survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
