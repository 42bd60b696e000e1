package atomicfile

import (
	"errors"
	"io"
	"os"
)

// Put is Write, but for what no file replaces: a pipe, a socket or a device gets what f writes
// as it comes, and so does what this process puts out, a file though that may be, as of
// --json /dev/stdout > FILE, behind what is in it.
func Put(path string, f func(io.Writer) error) error {
	if out := output(path); out != nil {
		return f(out)
	}
	if !isStream(path) {
		return Write(path, f)
	}
	stream, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f(stream), stream.Close())
}

// CheckPut is Check, of Put.
func CheckPut(path string) error {
	if output(path) != nil || isStream(path) {
		return nil
	}
	return Check(path)
}

// output is what this process puts out, if path names that, under whatever name.
func output(path string) *os.File {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if out, err := f.Stat(); err == nil && os.SameFile(st, out) {
			return f
		}
	}
	return nil
}

// isStream says whether path names a pipe, a socket or a device.
func isStream(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir() && !st.Mode().IsRegular()
}
