package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check says, before the work is done, why Write could not put a file at path. It
// leaves nothing behind.
func Check(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return errors.New("it is a folder: give the name of a file in it")
	}
	dir := filepath.Dir(path)
	switch st, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: make it first", dir)
	case err == nil && !st.IsDir():
		return fmt.Errorf("%s is a file, not a folder", dir)
	}
	tmp, err := create(path)
	if err != nil {
		return fmt.Errorf("no file can be made there: %w", cause(err))
	}
	return errors.Join(os.Remove(tmp.Name()), tmp.Close())
}

// cause is err without the name of the temporary, which says nothing to people.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
