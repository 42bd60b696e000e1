package shard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// makeParents makes dir and what lies above it, and lists what it made,
// outermost first.
func makeParents(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break // an error other than absence is reported by Mkdir below
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	for i, d := range missing {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, removeEmpty(missing[:i]))
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
