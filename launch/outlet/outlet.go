// Package outlet is output that never waits for its reader. A program that must
// act at once, whatever happens to those who watch it, writes to an Outlet: the
// text is queued, and a goroutine of its own writes it to the file behind, which
// may be a pager that is not turned on, or a network stream that stands still.
//
// Invariants:
//   - Write never blocks. What it is given is written whole, in order, or not
//     at all.
//   - The queue is bounded. What comes when it is full is dropped and counted; a line at
//     the place of the gap says how much, once there is room for more or all is written.
//   - Nothing is written after the first error.
//
// All methods may be called from any goroutine. The goroutine of an Outlet ends after
// Close; that of one whose reader has stopped ends with the process only: no write to a
// file can be called off.
package outlet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bound is how many bytes may wait before the last text that is taken.
	bound = 1 << 20
	// piece is the largest single write: who takes one shows that he reads.
	piece = 16 << 10
	// patience is how long is waited for a reader to take one piece before he counts
	// as one who reads no more.
	patience = time.Second
	// turn is the most that one look at the clock adds to that: while this process
	// stands still (a SIGSTOP, a machine that swaps) nobody can take anything from it.
	turn = 50 * time.Millisecond
)

// Outlet is one end of a queue that Writers share.
type Outlet struct {
	mu      sync.Mutex
	changed *sync.Cond
	queue   []text
	bytes   int           // in queue
	dropped int           // lines since the last that found room,
	gap     io.Writer     // the last of which was to go here
	waited  time.Duration // for the reader, since he last took something or had nothing to take
	counted time.Time     // up to here
	err     error         // the first of writing
	failed  chan struct{} // closed when there is one
	closed  bool          // nothing more is written

	turn sync.Mutex // of who has awaited room, and writes
}

type text struct {
	to    io.Writer
	bytes []byte
}

// Writer is an io.Writer that never blocks.
type Writer struct {
	*Outlet
	to io.Writer
}

// Pair makes the outlets of out and err, a program's two streams. Streams that
// are one file keep their common order; of others neither waits for the other.
func Pair(out, err io.Writer) (*Writer, *Writer) {
	a := New(out)
	b := &Writer{a.Outlet, err}
	if !same(out, err) {
		b.Outlet = start()
	}
	return a, b
}

// New makes the outlet of one file.
func New(to io.Writer) *Writer { return &Writer{start(), to} }

// same says whether two writers are the same open file; of what is no file it
// is not known, and assumed.
func same(a, b io.Writer) bool {
	f, ok1 := a.(*os.File)
	g, ok2 := b.(*os.File)
	if !ok1 || !ok2 {
		return true
	}
	x, err1 := f.Stat()
	y, err2 := g.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func start() *Outlet {
	o := &Outlet{failed: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// Under is the file or writer behind w.
func (w *Writer) Under() io.Writer { return w.to }

// Write queues p. The error is that of an earlier write to the file behind.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	switch {
	case w.bytes >= bound:
		w.dropped += max(1, bytes.Count(p, []byte{'\n'}))
		w.gap = w.to
		return len(p), nil
	case w.dropped > 0:
		w.tellGap(w.to)
	}
	w.add(w.to, bytes.Clone(p))
	return len(p), nil
}

// tellGap queues the line that says how much has been dropped. mu is held.
func (o *Outlet) tellGap(to io.Writer) {
	o.add(to, fmt.Appendf(nil, "[%d lines are left out here: the output was not taken]\n", o.dropped))
	o.dropped = 0
}

// add queues p. mu is held.
func (o *Outlet) add(to io.Writer, p []byte) {
	if o.bytes == 0 {
		o.waited = 0
	}
	o.queue = append(o.queue, text{to, p})
	o.bytes += len(p)
	o.changed.Broadcast()
}

// Turn waits while more than half of the queue is full and its reader still
// reads: so who produces output goes no faster than it is read. A reader who
// takes nothing while he is waited for, a second in all, is no longer waited for.
// Of many who write, the others wait with the first until he calls over: all that
// they write is more than there is room for.
func (o *Outlet) Turn() (over func()) {
	o.turn.Lock()
	o.wait(bound / 2)
	return o.turn.Unlock
}

// Flush waits until all is written, or there is an error, or the reader is no longer
// waited for. The error is the first of writing.
func (o *Outlet) Flush() error {
	o.wait(0)
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Waits reports whether anything is not written yet.
func (o *Outlet) Waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes > 0
}

// HasRoom reports whether so many bytes more are sure not to be dropped. There is some room, a
// quarter of the queue, that who awaits room leaves.
func (o *Outlet) HasRoom(more int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes+more <= bound*3/4
}

// Close has the goroutine end when all is written. Nothing must be written after it.
func (o *Outlet) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// Failed is closed when there is an error of writing.
func (o *Outlet) Failed() <-chan struct{} { return o.failed }

// wait waits until at most so many bytes are queued, with the patience that
// both Turn and Flush have.
func (o *Outlet) wait(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > most && o.err == nil && o.waited < patience {
		asleep := time.Now()
		wake := time.AfterFunc(turn, o.wake)
		o.changed.Wait()
		wake.Stop()
		if o.counted.After(asleep) { // by another who waits
			asleep = o.counted
		}
		o.counted = time.Now()
		o.waited += min(o.counted.Sub(asleep), turn)
	}
}

// wake wakes all that wait. Under the lock, for who has not begun to wait when a timer runs out,
// as it stood still, would hear of nothing else and wait for ever.
func (o *Outlet) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

// untilRoom waits until a file has room that does not wait by itself: whoever else has
// the same open file, as the other programs of a pipeline or of a terminal, may have
// asked for that.
func untilRoom(w io.Writer) error {
	s, ok := w.(syscall.Conn)
	if !ok {
		return unix.EAGAIN
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		_, inner = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
	})
	if errors.Is(inner, unix.EINTR) {
		inner = nil // the next write says whether there is room
	}
	return errors.Join(err, inner)
}

// run writes what is queued until the first error.
func (o *Outlet) run() {
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.changed.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		t := o.queue[0]
		o.mu.Unlock()
		n, err := t.to.Write(t.bytes[:min(len(t.bytes), piece)])
		if errors.Is(err, unix.EAGAIN) {
			err = untilRoom(t.to)
		}
		o.mu.Lock()
		if err != nil {
			o.err, o.queue, o.bytes = err, nil, 0
			close(o.failed)
			o.changed.Broadcast()
			o.mu.Unlock()
			return
		}
		if o.queue[0].bytes = t.bytes[n:]; len(o.queue[0].bytes) == 0 {
			o.queue = o.queue[1:]
		}
		o.bytes, o.waited = o.bytes-n, 0
		if len(o.queue) == 0 && o.dropped > 0 { // else nobody may write any more, and tell
			o.tellGap(o.gap)
		}
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}
