package atomicfile

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/dustin/go-humanize"
)

// OddError is what has the name of a file that Write might have written, and is none.
type OddError struct {
	Path, Is string // "is a pipe"
}

func (o *OddError) Error() string { return o.Path + " " + o.Is + ", where a file is expected" }

// Read is the content of a file that Write wrote, of at most so many bytes. What cannot be
// one is an *OddError, and nobody waits for it: a pipe, whose writer may never come, a folder,
// a device, or what is larger.
func Read(path string, most int64) (b []byte, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > most {
		return nil, &OddError{path, "has more than " + humanize.IBytes(uint64(most))}
	}
	return io.ReadAll(f)
}

// Open opens a file to be read, under the same conditions, but of any size.
func Open(path string) (*os.File, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &OddError{path, "is a " + kind(st.Mode())}
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // if a pipe takes its place just now
}
