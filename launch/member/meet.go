package member

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

const (
	redialInterval = 200 * time.Millisecond
	firstRedial    = 10 * time.Millisecond // then twice as long each time, up to redialInterval
	dialLimit      = 2 * time.Second
	verifyLimit    = 300 * time.Millisecond
	firstHint      = 5 * time.Second // until it is said that nobody answers; then at twice the time
	unacknowledged = time.Minute     // how long sent bytes may stay so before a connection is given up
)

// keepAlive finds a host that is gone without a word, if judge does not. It has the
// patience of a network whose queues are full.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 10 * time.Second, Count: 3}

// intro is what launchers tell each other first on a link.
type intro struct {
	Name string `json:"name"`
	Port int    `json:"port"` // on which it listens
	Life bool   `json:"life"` // the connection is to be a life line
	// Beat is the coordinator's time between pulses.
	Beat time.Duration `json:"beat,omitempty"`
}

// patiently does try until it succeeds, fails for good, or cfg.Wait has passed.
func (m *Member) patiently(ctx context.Context, try func(context.Context) error, passing func(error) bool) error {
	started, hint, pause := time.Now(), firstHint, firstRedial
	var last error // of a try that was not cut short, which says more

	limited, cancel := context.WithTimeout(ctx, m.cfg.Wait) // a look-up may take long
	defer cancel()
	for {
		err := try(limited)
		// a connection may be given up at that very time before limited says that it is over
		over := limited.Err() != nil || time.Since(started) >= m.cfg.Wait
		if last == nil || !over {
			last = err
		}
		switch waited := time.Since(started); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !over && !passing(err):
			return err
		case over || waited+redialInterval > m.cfg.Wait:
			return &lateError{m.cfg.Wait, last}
		case waited > hint:
			hint *= 2
			m.cfg.Log.Warn("node 0 is not reached yet", "address", m.cfg.Endpoint, "waited", waited.Round(time.Second), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, redialInterval)
	}
}

// lateError is that the time for something has passed.
type lateError struct {
	wait time.Duration
	last error
}

func (e *lateError) Error() string { return fmt.Sprintf("not within %v: %v", e.wait, e.last) }
func (e *lateError) Unwrap() error { return e.last }

// passing reports whether err is that a name does not resolve or an address is not
// there, which may pass.
func passing(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok || errors.Is(err, errNotYet)
}

// join links this launcher to the coordinator.
func (m *Member) join(ctx context.Context) error {
	host, ports, err := m.where()
	if err != nil {
		return err
	}
	var c *secure
	err = m.patiently(ctx, func(ctx context.Context) error {
		all, err := thisMachine().lookup(ctx, host)
		if err == nil {
			c, err = m.search(ctx, all, ports)
		}
		return err
	}, func(err error) bool { return len(ports) > 1 || !foreign(err) })
	late, isLate := errors.AsType[*lateError](err)
	switch {
	case isLate && len(ports) > 1:
		same := "the key and --rdzv-id"
		if !m.cfg.Ports.Any() {
			same = "the key, --rdzv-id and --port-range"
		}
		return fmt.Errorf("no coordinator of this job answered at %s within %v (%w): check the address, that %s are the same on all nodes, and that node 0 runs", m.cfg.Endpoint, late.wait, late.last, same)
	case errors.Is(err, errKey):
		return fmt.Errorf("node 0 answered at %s, but %w: give EBTRAIN_KEY the same value on all nodes", m.cfg.Endpoint, errKey)
	case errors.Is(err, errLabel):
		return fmt.Errorf("node 0 answered at %s, but %w: give the same --rdzv-id on all nodes", m.cfg.Endpoint, errLabel)
	case isLate:
		return fmt.Errorf("no coordinator answered at %s within %v (%s): check the address, and that node 0 runs", m.cfg.Endpoint, late.wait, strings.ReplaceAll(late.last.Error(), "\n", "; "))
	case err != nil:
		return err
	}
	if err := m.listen(c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), m.anyPort()); err != nil {
		return errors.Join(err, c.Close())
	}
	var l *link
	var has uint64
	err = m.patiently(ctx, func(ctx context.Context) (err error) {
		if c == nil {
			if c, err = m.dial(ctx, m.at); err != nil {
				return err
			}
		}
		if l, has, err = m.introduce(c, false); err != nil {
			err, c = errors.Join(err, c.Close()), nil
		}
		return err
	}, func(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) || ended(err) }) // it is busy, or this launcher was, and is waited for no more
	if err != nil {
		return errors.Join(fmt.Errorf("node 0 at %s: %w", m.cfg.Endpoint, err), m.end())
	}
	m.wg.Go(func() { m.keep(c, l, has) })
	m.wg.Go(func() { m.holdLife(l.peer) })
	m.wg.Go(m.rejoin)
	return nil
}

// sameScope reports whether both ends of c reach the next wire only, or both more:
// the ranks of two hosts find each other from the addresses of both.
func sameScope(c net.Conn) bool {
	narrow := func(a net.Addr) bool {
		t, ok := a.(*net.TCPAddr)
		return ok && t.IP.To4() == nil && t.IP.IsLinkLocalUnicast()
	}
	return narrow(c.LocalAddr()) == narrow(c.RemoteAddr())
}

// foreign reports whether err is the answer of another job's launcher.
func foreign(err error) bool { return errors.Is(err, errKey) || errors.Is(err, errLabel) }

// dial connects to the coordinator, looked for at an address, and proves the key.
func (m *Member) dial(ctx context.Context, at netip.AddrPort) (*secure, error) {
	d := net.Dialer{Timeout: dialLimit}
	c, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	err = tune(c)
	if err == nil {
		var s *secure
		if s, err = m.secret.dial(c); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, c.Close())
}

// tune makes a connection notice that the other host is gone.
func tune(c net.Conn) error {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("a connection over %s, want TCP", c.RemoteAddr().Network())
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
	return errors.Join(t.SetKeepAliveConfig(keepAlive), t.SetNoDelay(true), err, inner)
}

// introduce is the dialer's part of the introduction, on a link or a life line: it
// returns the link to the coordinator, and the number of the last message which
// that has received.
func (m *Member) introduce(c *secure, life bool) (*link, uint64, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	known := m.coord
	m.mu.Unlock()
	var got uint64
	if known != "" {
		got = m.link(known).got()
	}
	if err := m.sendIntro(c, got, life); err != nil {
		return nil, 0, err
	}
	in, has, err := readIntro(c)
	switch {
	case err != nil:
		return nil, 0, err
	case known != "" && in.Name != known:
		return nil, 0, errAnother
	}
	m.told.Store(int64(in.Beat))
	m.mu.Lock()
	m.coord = cmp.Or(m.coord, in.Name) // who is known stays so, whatever else is introduced meanwhile
	m.mu.Unlock()
	return m.link(in.Name), has, c.SetDeadline(time.Time{})
}

// errAnother is that the place of the coordinator has been taken by another.
var errAnother = errors.New("another launcher has taken the place of node 0")

func (m *Member) sendIntro(c *secure, got uint64, life bool) error {
	text, err := json.Marshal(intro{m.cfg.Name, m.Port(), life, m.beat()})
	if err != nil {
		return err
	}
	_, err = c.Write(frame{frameIntro, got, text}.encode())
	return err
}

func readIntro(c *secure) (intro, uint64, error) {
	var in intro
	f, err := readFrame(c)
	if err == nil && f.kind != frameIntro {
		err = fmt.Errorf("a frame of kind %q where an introduction was expected", f.kind)
	}
	if err == nil {
		err = json.Unmarshal(f.text, &in)
	}
	if err == nil && in.Name == "" {
		err = errors.New("an introduction without a name")
	}
	return in, f.number, err
}

// answer takes a connection of a launcher that wants a link or a life line. It is
// for the coordinator; others have none. See taker for leave.
func (m *Member) answer(c net.Conn, leave func() bool) {
	defer context.AfterFunc(m.ctx, func() { _ = c.Close() })()
	defer func() { _, _ = leave(), c.Close() }()
	if !m.cfg.Coordinator {
		return
	}
	select {
	case <-m.ready:
	case <-m.ctx.Done():
		return
	}
	s, err := m.secret.answer(c)
	switch {
	case foreign(err):
		m.foreign.met(c.RemoteAddr(), err)
		return
	case err == nil && !leave():
		err = errors.New("too many connect at once")
	case err == nil:
		err = errors.Join(tune(c), c.SetDeadline(time.Now().Add(handshakeLimit)))
	}
	if err != nil {
		m.cfg.Log.Debug("a connection was refused", "from", c.RemoteAddr(), "error", err)
		return
	}
	in, has, err := readIntro(s)
	if err == nil {
		err = errors.Join(m.sendIntro(s, m.link(in.Name).got(), in.Life), c.SetDeadline(time.Time{}))
	}
	if err != nil {
		m.cfg.Log.Debug("a connection was refused", "from", c.RemoteAddr(), "error", err)
		return
	}
	home := netip.AddrPortFrom(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), uint16(in.Port))
	if in.Life {
		m.live(in.Name, s, home)
		return
	}
	err = m.link(in.Name).run(s, has, func(msg rendezvous.Message) { m.push(rendezvous.Inbound{From: in.Name, Msg: msg}) })
	m.cfg.Log.Debug("link ended", "to", in.Name, "error", err)
	switch {
	case m.ctx.Err() != nil:
	case errors.Is(err, errFarewell):
		m.hasLeft(in.Name)
		m.lose(rendezvous.Inbound{From: in.Name})
	case refused(home):
		m.lose(rendezvous.Inbound{From: in.Name, How: rendezvous.Killed})
	}
}

// refused reports whether nobody listens at addr any more, though its host lives.
func refused(addr netip.AddrPort) bool {
	c, err := net.DialTimeout("tcp", addr.String(), verifyLimit)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
