package shard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// checkPlace refuses a place that the rename at the end could not fill.
func checkPlace(dir string) error {
	if base := filepath.Base(dir); base == "." || base == ".." || base == string(filepath.Separator) {
		return fmt.Errorf("%s: cannot be replaced as a whole: give the name of a folder in it", dir)
	}
	own, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: what it would lie in is a file, not a directory; choose another place", dir)
	}
	if err != nil {
		return err
	}
	if own.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s: a link, which no data set replaces: give the place that it leads to, or choose another", dir)
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	a, known := own.Sys().(*syscall.Stat_t)
	b, both := above.Sys().(*syscall.Stat_t)
	if own.IsDir() && known && both && a.Dev != b.Dev {
		return fmt.Errorf("%s: is a mount point, which cannot be replaced: give the name of a folder in it", dir)
	}
	return nil
}

// checkTarget refuses to write where something is, unless force is set and
// that is a data set, whole or damaged, or an empty directory.
func checkTarget(dir string, force bool) error {
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: exists and is not a directory; choose another place", dir)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		return err
	}
	stranger, err := strangerIn(dir, files)
	if err != nil {
		return err
	}
	if stranger != "" {
		return fmt.Errorf("%s: exists, is not empty and is not a data set alone (%s), so it is never replaced; choose another place", dir, stranger)
	}
	if !force {
		return fmt.Errorf("%s: exists; choose another place, or replace it with --force", dir)
	}
	return nil
}

// shardFile is what the names of shards look like.
var shardFile = regexp.MustCompile(`^shard-[0-9]{5,}\.safetensors\.zst$`)

// strangerIn says what in dir, which holds files, a data set would not have: what
// is replaced is deleted, and that must be nobody's only copy. "" if dir has nothing else.
func strangerIn(dir string, files []fs.DirEntry) (string, error) {
	if _, err := os.Lstat(filepath.Join(dir, IndexName)); errors.Is(err, fs.ErrNotExist) {
		return "it has no " + IndexName, nil
	}
	if is, err := isIndex(filepath.Join(dir, IndexName)); err != nil || !is {
		return IndexName + " is not that of a data set", err
	}
	for _, f := range files {
		switch {
		case f.Type().IsRegular() && (f.Name() == IndexName || f.Name() == vocabularyName):
			continue
		case !f.IsDir() || !validSplit(f.Name()):
			return "there is " + f.Name(), nil
		}
		shards, err := os.ReadDir(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		for _, s := range shards {
			if !s.Type().IsRegular() || !shardFile.MatchString(s.Name()) {
				return "there is " + filepath.Join(f.Name(), s.Name()), nil
			}
		}
	}
	return "", nil
}

// isIndex says whether the file at path begins as an index does: as far as its
// format, since what is damaged later is still a data set that may be replaced.
func isIndex(path string) (bool, error) {
	if st, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	d := json.NewDecoder(io.LimitReader(f, maxIndexBytes))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return false, nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false, nil
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return false, nil
		}
		if key == "format" {
			return value == formatName, nil
		}
	}
	return false, nil
}
