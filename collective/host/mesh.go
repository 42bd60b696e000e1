package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
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

// dialAll connects to the leaders of lower hosts, and is what there is, too, with an error.
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
		var err error
		if wires[o], err = newWire(conns[o]); err != nil {
			closeAll(got)
			return fmt.Errorf("connection to rank %d: %w", m.links[o].rank, errors.Join(err, closeWires(wires)))
		}
	}
	m.carrier = newPump(m.links, wires, newCourtesy(here))
	return nil
}

// closeWires closes those of wires that there are.
func closeWires(wires []*wire) error {
	var errs []error
	for _, w := range wires {
		if w != nil {
			errs = append(errs, w.close())
		}
	}
	return errors.Join(errs...)
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
