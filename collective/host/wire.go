package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A wire is a connection for data that is read and written without waiting. Go's
// poller does not know it: that would wake a thread for every message, also for
// those that somebody looks for already.
type wire struct {
	fd     int
	broken atomic.Bool // cut

	mu     sync.Mutex // fd is not another's while it is held and the wire is not closed
	closed bool
}

// errCut is what a wire says that was cut.
var errCut = errors.New("given up")

// errAgain is that nothing can be read, or written, now.
var errAgain = unix.EAGAIN

// newWire takes the connection out of c, which it closes.
func newWire(c net.Conn) (*wire, error) {
	w := &wire{fd: -1}
	s, ok := c.(interface {
		net.Conn
		syscall.Conn
	})
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor, expected a TCP connection", c)
	}
	err := onFD(s, func(fd int) (err error) {
		w.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // it does not wait, as c's does not
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// read reads what is there, and is errAgain if that is nothing.
func (w *wire) read(b []byte) (int, error) {
	for !w.broken.Load() {
		n, err := unix.Read(w.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && !w.broken.Load():
			return 0, io.EOF
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, errCut
}

// write writes what there is room for, and is errAgain if that is nothing.
func (w *wire) write(b []byte) (int, error) {
	for !w.broken.Load() {
		n, err := unix.Write(w.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		}
		return n, nil
	}
	return 0, errCut
}

// cut wakes whoever waits for w. The other end is told nothing.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.broken.Store(true)
		_ = unix.Shutdown(w.fd, unix.SHUT_RD) // it fails where the other end is gone: as good
	}
}

func (w *wire) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return unix.Close(w.fd)
}
