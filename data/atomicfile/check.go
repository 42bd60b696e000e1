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
		if err := Dangling(dir); err != nil {
			return fmt.Errorf("%w: make that first", err)
		}
		return fmt.Errorf("there is no folder %s: make it first", dir)
	case err == nil && !st.IsDir():
		return fmt.Errorf("%s is a file, not a folder", dir)
	}
	file, err := follow(path)
	if err != nil {
		return fmt.Errorf("%w: give another name", err)
	}
	tmp, err := create(file)
	if err != nil {
		return fmt.Errorf("no file can be made there: %w", cause(err))
	}
	if err := errors.Join(os.Remove(tmp.Name()), tmp.Close()); err != nil {
		return fmt.Errorf("a file that was made there to try it cannot be removed: %w", cause(err))
	}
	return nil
}

// cause is err without the name of the temporary, which says nothing to people.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// follow is the file that path names, through links if it is one, which may not be there. If
// something else is there that a file must not replace, the error says what, and not where.
func follow(path string) (string, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if to, err := os.Readlink(path); err == nil {
			return "", fmt.Errorf("it is a link to %s, which is not there", to)
		}
		return path, nil
	case err != nil:
		return "", cause(err)
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("it is a %s, which no file may replace", kind(st.Mode()))
	}
	file, err := filepath.EvalSymlinks(path)
	return file, cause(err)
}

// Dangling is an error if path, or what it lies in, is a link to what is not there.
func Dangling(path string) error {
	for d := filepath.Clean(path); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			return nil
		} else if to, failed := os.Readlink(d); failed == nil && errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is a link to %s, which is not there", d, to)
		}
	}
}

// kind is what is no file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
