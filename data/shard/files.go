package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"ebtrain/data/atomicfile"
)

// failed is err of writing name, a file or folder of the data set at dir; nil of nil.
func failed(dir, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Join(dir, filepath.FromSlash(name)), cause(err))
}

// cause is err without the name of the temporary, which says nothing to people, and with
// what to do where the disk is full.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: make room there, or choose another place", err)
	}
	return err
}

// makeParents makes dir and what lies above it, so that their names survive a power cut,
// and lists what it made, outermost first.
func makeParents(dir string) ([]string, error) {
	if err := atomicfile.Dangling(dir); err != nil {
		return nil, err
	}
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break // an error other than absence is reported by Mkdir below
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	for i, d := range missing {
		if err := os.Mkdir(d, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, removeEmpty(missing[:i]))
		}
		if err := atomicfile.SyncDir(filepath.Dir(d)); err != nil {
			return nil, errors.Join(err, removeEmpty(missing[:i+1]))
		}
	}
	return missing, nil
}

// removeEmpty removes directories, innermost first, as far as they are empty.
func removeEmpty(dirs []string) error {
	for _, d := range slices.Backward(dirs) {
		files, err := os.ReadDir(d)
		if err != nil || len(files) > 0 {
			return err // someone else uses it
		}
		if err := os.Remove(d); err != nil {
			return err
		}
	}
	return nil
}
