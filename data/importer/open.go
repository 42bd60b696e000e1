package importer

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openRegular opens a file for reading and refuses what is none: to open a
// named pipe can take for ever, to open a device can do things. Reads end with
// ctx.
func openRegular(ctx context.Context, path string) (*regular, error) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, notRegular(path, st, err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() { // replaced meanwhile
		_ = f.Close() // nothing was done with it
		return nil, notRegular(path, st, err)
	}
	return &regular{contextReader{ctx, f}, f, st.Size()}, nil
}

func notRegular(path string, st fs.FileInfo, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s, expected a regular file", path, kind(st.Mode()))
}

// kind names what is not a regular file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// regular is a regular file that is being read.
type regular struct {
	contextReader
	file *os.File
	size int64
}

func (r *regular) Close() error { return r.file.Close() }

// ReadAt is for zips.
func (r *regular) ReadAt(b []byte, at int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.file.ReadAt(b, at)
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context // an io.Reader has no other way to learn of it
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}
