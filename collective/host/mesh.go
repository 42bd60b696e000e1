package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/collective/schedule"
)

// A mesh connects the leaders of all hosts, each with each, by two TCP
// connections: one for data, and one for control, which is always read, so
// that an abort and a death are noticed at once and never wait behind data.
type mesh struct {
	host   int
	rank   int     // this leader
	links  []*link // by host; nil at host
	others []int   // the hosts but this one, each leader beginning behind itself

	exchange exchange // under way
	hello    [headerBytes]byte
	doubling doubling
	scratch  netScratch
}

// A link is this leader's end of the connections to another leader.
type link struct {
	rank          int // of the other leader
	data, control net.Conn
	heard         func(rank int) // nil, or told when data arrive
	recv          chan []byte    // buffers to fill from data, in order
	done          chan error     // one for each buffer
	posted        int            // buffers that are not waited for
	theirs        [headerBytes]byte

	due  atomic.Uint32 // headers for which this leader waits, and the other for nobody
	came atomic.Uint32 // those of them that have arrived

	mu   sync.Mutex  // for writing to control
	left atomic.Bool // the peer has said farewell
}

// Messages on control connections: one byte, then for an abort the length of
// the record (2 bytes, little endian) and the record.
const (
	controlAbort    = 'A'
	controlFarewell = 'B'
)

// keepAlive finds a host that is gone without a word, if nobody else does: a
// launcher knows it within a second or so. It has the patience of a network whose
// queues are full.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 10 * time.Second, Count: 3}

// unacknowledged is how long sent data may stay unacknowledged.
const unacknowledged = time.Minute

// connectMesh connects this leader with all others. Leaders of higher hosts
// dial, those of lower hosts listen. addrs has each host's address; heard may be nil.
func connectMesh(ctx context.Context, id identity, t topology, ln net.Listener, addrs []string, heard func(int), log *slog.Logger) (*mesh, error) {
	m := &mesh{host: t.host, rank: t.rank, links: make([]*link, len(t.hosts)), scratch: newNetScratch(len(t.hosts)),
		doubling: doubling{rounds: schedule.Rounds(t.host, len(t.hosts))}}
	for i := 1; i < len(m.links); i++ {
		m.others = append(m.others, (m.host+i)%len(m.links))
	}
	var want []call
	for h := t.host + 1; h < len(t.hosts); h++ {
		want = append(want, call{forControl, t.hosts[h][0]}, call{forData, t.hosts[h][0]})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var got map[call]net.Conn
	var acceptErr error
	var accepting sync.WaitGroup
	accepting.Go(func() { got, acceptErr = id.accept(ctx, ln, want, log) })
	dialed, dialErr := dialAll(ctx, id, t, addrs)
	if dialErr != nil {
		cancel(dialErr)
	}
	accepting.Wait()
	if err := errors.Join(dialErr, acceptErr); err != nil {
		closeAll(dialed)
		closeAll(got)
		return nil, err
	}
	maps.Copy(got, dialed)
	for h, ranks := range t.hosts {
		if h != t.host {
			m.links[h] = newLink(ranks[0], got[call{forData, ranks[0]}], got[call{forControl, ranks[0]}])
		}
	}
	return m, m.tune(heard)
}

func dialAll(ctx context.Context, id identity, t topology, addrs []string) (map[call]net.Conn, error) {
	got := map[call]net.Conn{}
	for h := range t.host {
		for _, p := range []purpose{forControl, forData} {
			want := call{p, t.hosts[h][0]}
			c, err := id.dial(ctx, "tcp", addrs[h], want)
			if err != nil {
				return got, err
			}
			got[want] = c
		}
	}
	return got, nil
}

func newLink(rank int, data, control net.Conn) *link {
	// Four buffers: a header and the data of both halves of an all-reduce,
	// and one to spare, so that posting never blocks.
	return &link{rank: rank, data: data, control: control, recv: make(chan []byte, 4), done: make(chan error, 4)}
}

func (m *mesh) tune(heard func(int)) error {
	for _, o := range m.others {
		l := m.links[o]
		l.heard = heard
		for _, c := range []net.Conn{l.data, l.control} {
			t := c.(*net.TCPConn)
			err := errors.Join(t.SetKeepAliveConfig(keepAlive), t.SetNoDelay(true), setUserTimeout(t))
			if err != nil {
				m.close()
				return fmt.Errorf("connection to rank %d: %w", l.rank, err)
			}
		}
	}
	return nil
}

func setUserTimeout(c *net.TCPConn) error {
	return onFD(c, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}

// onFD has do work on the descriptor of c.
func onFD(c syscall.Conn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = do(int(fd)) })
	return errors.Join(err, inner)
}

// post has b filled with the data that come next.
func (l *link) post(b []byte) {
	l.posted++
	l.recv <- b
}

// wait waits until the first buffer that was posted is filled, or cannot be.
func (l *link) wait() error {
	err := <-l.done
	l.posted--
	return err
}

// giveUp waits until no posted buffer will be touched any more: those that are not
// filled never will be.
func (l *link) giveUp() {
	interrupt(l.data)
	for l.posted > 0 {
		_ = l.wait() // it is given up because of another error
	}
}

// fill reads data into the buffers posted to l until recv is closed.
func (l *link) fill() {
	for b := range l.recv {
		_, err := l.read(b, len(b))
		if err == nil && len(b) == headerBytes && &b[0] == &l.theirs[0] {
			l.came.Add(1)
		}
		l.done <- err
	}
}

// read reads at least so many bytes of data into b, how many it says, and tells of
// everything that arrives. One goroutine reads at a time: fill, or whoever carries
// out a collective in which nothing is posted to fill.
func (l *link) read(b []byte, least int) (n int, err error) {
	for n < least {
		got, err := l.data.Read(b[n:])
		if n += got; got > 0 && l.heard != nil {
			l.heard(l.rank)
		}
		if err != nil && n < least {
			return n, err
		}
	}
	return n, nil
}

// listen reads l's control connection: it returns the record of an abort,
// errFarewell, or the error that ended the connection.
func (l *link) listen() (record, error) {
	var b [3 + maxRecord]byte
	if _, err := io.ReadFull(l.control, b[:1]); err != nil {
		return record{}, err
	}
	switch b[0] {
	case controlFarewell:
		return record{}, errFarewell
	case controlAbort:
		if _, err := io.ReadFull(l.control, b[1:3]); err != nil {
			return record{}, err
		}
		n := int(b[1]) | int(b[2])<<8
		if n > maxRecord {
			return record{}, errRecord
		}
		if _, err := io.ReadFull(l.control, b[3:3+n]); err != nil {
			return record{}, err
		}
		return decodeRecord(b[3 : 3+n])
	}
	return record{}, fmt.Errorf("control message of unknown type %q", b[0])
}

var errFarewell = errors.New("the peer has closed its communicator")

// say writes b to control. It never waits long: a peer that does not read has
// worse problems than a lost message.
func (l *link) say(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.control.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := l.control.Write(b)
	return err
}

// watch reads what the leader at the other end of l says until it is gone.
func (l *link) watch(a *alarm) {
	r, err := l.listen()
	switch {
	case err == nil:
		a.raise(&failure{record: r, remote: true})
	case errors.Is(err, errFarewell):
		l.left.Store(true)
	default:
		a.raise(a.gone(l.rank, "its connection ended", err))
	}
}

// tell says b to all leaders; what it is is for the log.
func (m *mesh) tell(b []byte, what string, log *slog.Logger) {
	for _, o := range m.others {
		if err := m.links[o].say(b); err != nil {
			log.Debug("message not sent", "message", what, "to_rank", m.links[o].rank, "err", err)
		}
	}
}

// hasLeft says whether the leader with this rank has said farewell.
func (m *mesh) hasLeft(rank int) bool {
	for _, o := range m.others {
		if l := m.links[o]; l.rank == rank {
			return l.left.Load()
		}
	}
	return false
}

func (m *mesh) close() {
	for _, o := range m.others {
		_ = errors.Join(m.links[o].control.Close(), m.links[o].data.Close()) // all is said
	}
}
