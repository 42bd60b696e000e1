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

	"ebtrain/collective/congestion"
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

	carrier  carrier
	limit    time.Duration // for which data may stay unacknowledged
	exchange exchange      // under way
	hello    [headerBytes]byte
	doubling doubling
	grid     *grid
	scratch  netScratch
}

// A link is this leader's end of the connections to another leader.
type link struct {
	rank    int // of the other leader
	control net.Conn
	heard   func(rank int) // nil, or told when data arrive
	theirs  [headerBytes]byte

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

// unacknowledged is how long what is said on a control connection may stay
// unacknowledged. Data are watched for that (watchData): Linux would count the time for which
// a peer has no room for them, too, and one that is late to a collective does not read them.
const unacknowledged = time.Minute

// connectMesh connects this leader with all others. Leaders of higher hosts
// dial, those of lower hosts listen. addrs has each host's address; here is who runs
// beside this one.
func connectMesh(ctx context.Context, id identity, t topology, ln net.Listener, addrs []string, g *grid, cfg Config, here company, log *slog.Logger) (*mesh, error) {
	m := &mesh{host: t.host, rank: t.rank, limit: cfg.unacknowledged, links: make([]*link, len(t.hosts)), scratch: newNetScratch(len(t.hosts)),
		doubling: doubling{rounds: schedule.Rounds(t.host, len(t.hosts))}, grid: g}
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
	accepting.Go(func() {
		if got, acceptErr = id.accept(ctx, ln, want, log); acceptErr != nil {
			cancel(acceptErr)
		}
	})
	dialed, dialErr := dialAll(ctx, id, t, addrs)
	if dialErr != nil {
		cancel(dialErr)
	}
	accepting.Wait()
	if err := firstOf(dialErr, acceptErr); err != nil {
		closeAll(dialed)
		closeAll(got)
		return nil, err
	}
	maps.Copy(got, dialed)
	warnPaced(got, log)
	if err := m.carry(t, got, cfg, here); err != nil {
		return nil, err
	}
	return m, nil
}

// firstOf is what went wrong, without what only followed from it, which would blame ranks
// that do not come because this one gives up.
func firstOf(dialErr, acceptErr error) error {
	switch {
	case dialErr != nil && errors.Is(acceptErr, dialErr):
		return dialErr
	case acceptErr != nil && errors.Is(dialErr, acceptErr):
		return acceptErr
	}
	return errors.Join(dialErr, acceptErr)
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

// warnPaced says that data go over connections whose congestion control is none for
// them, if it could not be replaced. One says it for all: they are made alike.
func warnPaced(got map[call]net.Conn, log *slog.Logger) {
	for which, c := range got {
		s, ok := c.(syscall.Conn)
		if which.purpose != forData || !ok {
			continue
		}
		if name, err := congestion.Paced(s); err != nil {
			log.Debug("congestion control not known", "to_rank", which.rank, "err", err)
		} else if name != "" {
			log.Warn("TCP between hosts is paced, which can halve its speed, and this process may choose no other congestion control: allow cubic or reno in sysctl net.ipv4.tcp_allowed_congestion_control", "control", name, "to_rank", which.rank)
			return
		}
	}
}

// carry makes links and their carrier of the connections.
func (m *mesh) carry(t topology, got map[call]net.Conn, cfg Config, here company) error {
	conns := make([]net.Conn, len(m.links))
	for _, o := range m.others {
		r := t.hosts[o][0]
		m.links[o] = &link{rank: r, control: got[call{forControl, r}], heard: cfg.Heard}
		conns[o] = got[call{forData, r}]
		err := errors.Join(tune(conns[o]), tune(m.links[o].control), limitSilence(m.links[o].control, cfg.unacknowledged))
		if err != nil {
			closeAll(got)
			return fmt.Errorf("connection to rank %d: %w", r, err)
		}
	}
	if cfg.threads || !pumped(len(t.locals())) {
		m.carrier = newThreads(m.links, conns)
		return nil
	}
	wires := make([]*wire, len(conns))
	for _, o := range m.others {
		w, err := newWire(conns[o])
		if err != nil {
			for _, w := range wires {
				if w != nil {
					err = errors.Join(err, w.close())
				}
			}
			closeAll(got)
			return fmt.Errorf("connection to rank %d: %w", m.links[o].rank, err)
		}
		wires[o] = w
	}
	m.carrier = newPump(m.links, wires, newCourtesy(here))
	return nil
}

// tune prepares any connection to another leader.
func tune(c net.Conn) error {
	t := c.(*net.TCPConn)
	return errors.Join(t.SetKeepAliveConfig(keepAlive), t.SetNoDelay(true))
}

// limitSilence ends c, which the other leader always reads, if what is sent stays
// unacknowledged for longer.
func limitSilence(c net.Conn, limit time.Duration) error {
	return onFD(c.(*net.TCPConn), func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
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

// hears tells that data have come.
func (l *link) hears() {
	if l.heard != nil {
		l.heard(l.rank)
	}
}

// filled counts the headers that were asked for.
func (l *link) filled(b []byte) {
	if len(b) == headerBytes && &b[0] == &l.theirs[0] {
		l.came.Add(1)
	}
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
		a.heard(r)
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

// close ends all that is said and read.
func (m *mesh) close() {
	m.carrier.cut()
	for _, o := range m.others {
		_ = m.links[o].control.Close() // all is said
	}
}
