package host

import (
	"context"
	"runtime"
	"time"
)

// A carrier moves the data of a leader to and from the leaders of other hosts, which it
// knows by their hosts. What comes from a host fills buffers in the order in which they
// were posted, or is read where none is. It belongs to whoever carries out the collective
// under way, but for fill, over, cut and close. Errors are linkErrors, or the cause of a
// context that has ended. There are two: threads, and pump, which has none (pumped).
type carrier interface {
	// heeds says whether waits end with their context.
	heeds() bool
	// post has b filled with what comes next from host o. It never waits.
	post(o int, b []byte)
	// wait waits until the first buffer posted for o, that was not waited for, is filled.
	wait(ctx context.Context, o int) error
	// read reads at least so many bytes from o into b, how many it says. Nothing is posted.
	read(ctx context.Context, o int, b []byte, least int) (int, error)
	// send begins to send b to o. It must not change before flush has returned.
	send(o int, b []byte) error
	// flush waits until all is sent. What is posted is filled meanwhile.
	flush(ctx context.Context) error
	// giveUp waits until no memory that was posted is written to any more. Nothing
	// can be read after it.
	giveUp()
	// fill is the life of a goroutine for what comes from o, if there is any.
	fill(o int)
	// over ends fill: nothing will be posted any more.
	over()
	// unanswered is for how long data sent to o stay unacknowledged that it has room for.
	// Any goroutine may call it, also after close.
	unanswered(o int) time.Duration
	// cut ends every wait, now and later. Any goroutine may call it.
	cut()
	// close closes the connections, when fill has ended.
	close() error
}

// pumped says whether ranks, of which so many are on this host, do without threads
// that read: beside such a rank no processor is idle, and a message that another
// thread reads costs two changes of threads. Where there are more processors large
// vectors are sent, read and reduced by several.
func pumped(locals int) bool { return runtime.NumCPU() <= 2*locals }
