package member

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// A life line is a TCP connection between a launcher and the coordinator over
// which each says ten times a second that it lives, and at its end that it
// leaves; less often among many, whose coordinator would have little else to do. It
// says so in a packet, too: a connection stands still if one direction of it is full,
// since nothing is acknowledged. The kernel closes it however a process ends, so who
// is killed is known at once; a host that is cut off falls silent, which is not yet a
// verdict: see judge.
//
// It is opened like a link, and is none: what is said on a link may wait behind a
// large message.
const (
	pulseInterval = 100 * time.Millisecond
	manyLaunchers = 32 // above, pulses are as many times further apart,
	slowest       = 5  // up to this

	sayAlive = 'a'
	sayLeave = 'b'
)

// life is what is known of a launcher by its life line.
type life struct {
	conn   net.Conn  // nil if it is broken
	heard  time.Time // when it last said anything; later where this process stood still since
	spoke  time.Time // when it last said anything
	left   bool      // it has said that it leaves
	lost   bool      // it has been reported
	judged bool      // somebody is looking after it
}

// holdLife keeps a life line to the coordinator, called name, until Close, or until
// the coordinator has left or is lost.
func (m *Member) holdLife(name string) {
	for {
		c, err := m.dial(m.ctx, m.at)
		if err == nil {
			if _, _, err = m.introduce(c, true); err == nil {
				m.live(name, c, m.at)
			} else {
				_ = c.Close()
			}
		}
		if err != nil {
			m.cfg.Log.Debug("no life line to the coordinator", "error", err)
		}
		m.mu.Lock()
		l := m.lives[name]
		over := l != nil && (l.left || l.lost) || m.lost[name]
		m.mu.Unlock()
		if over || m.ctx.Err() != nil {
			return
		}
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(rejoinInterval):
		}
	}
}

// live keeps up the life line c with the launcher called name, which listens at home,
// to its end.
func (m *Member) live(name string, c net.Conn, home netip.AddrPort) {
	m.mu.Lock()
	l := m.lives[name]
	if l == nil {
		l = &life{}
		m.lives[name] = l
	}
	if m.closing {
		m.mu.Unlock()
		_ = c.Close() // nothing was said: its end is no death
		return
	}
	if l.conn != nil {
		_ = l.conn.Close() // the other end has given it up
	}
	l.conn = c
	m.heard(name, l)
	m.mu.Unlock()
	m.wg.Go(func() { m.pulse(name, c) })
	spoke, err := m.hear(name, l, c)
	m.mu.Lock()
	current := l.conn == c
	if current {
		l.conn = nil
	}
	killed := current && spoke && !l.left && !m.closing && ended(err)
	m.mu.Unlock()
	_ = c.Close()
	if killed {
		m.bury(name, l, home)
	}
}

// bury tells that a launcher was killed whose life line has ended as by that. Its link
// ends, too, and what has come over it is told first, and may be a farewell. If the link
// stands and somebody listens at home, only the life line was cut, by what lies between:
// it is opened again, and the launcher judged by whether it then is.
func (m *Member) bury(name string, l *life, home netip.AddrPort) {
	k := m.link(name)
	m.settle(verifyLimit, []*link{k}, (*link).connected)
	if k.connected() && !refused(home) {
		m.cfg.Log.Debug("a life line was cut, and its launcher lives", "launcher", name)
		return
	}
	m.report(l, rendezvous.Inbound{From: name, Lost: true, How: rendezvous.Killed})
}

// beat is the time between pulses: the coordinator's choice, which it tells in its
// introduction.
func (m *Member) beat() time.Duration {
	if told := time.Duration(m.told.Load()); told > 0 {
		return told
	}
	return pulseInterval * time.Duration(min(max(1, m.cfg.Nodes/manyLaunchers), slowest))
}

// silence is how long a life line may be silent before its other end is asked
// otherwise.
func (m *Member) silence() time.Duration { return missed * m.beat() }

// hasLeft notes that a launcher has said farewell: whatever is still heard of it, it
// does not come back.
func (m *Member) hasLeft(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lives[name]
	if l == nil {
		l = &life{}
		m.lives[name] = l
	}
	l.left = true
}

// ended says that err is how a connection ends whose process has ended, on a
// host that lives and says so.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// pulse says that this launcher lives until c is closed, or Close. What it says waits
// in a buffer if the network is slow.
func (m *Member) pulse(name string, c net.Conn) {
	tick := time.NewTicker(m.beat())
	defer tick.Stop()
	for {
		if _, err := c.Write([]byte{sayAlive}); err != nil {
			return // c is closed, or hear knows
		}
		m.send(name, packet{From: m.cfg.Name})
		select {
		case <-tick.C:
		case <-m.ctx.Done():
			return
		}
	}
}

// hear reads what the other end says until its end. One that has not spoken yet may
// have been refused, and its end says nothing of the launcher.
func (m *Member) hear(name string, l *life, c net.Conn) (spoke bool, _ error) {
	var b [64]byte
	for {
		n, err := c.Read(b[:])
		m.mu.Lock()
		switch {
		case bytes.IndexByte(b[:n], sayLeave) >= 0:
			l.left = true
		case n > 0:
			m.heard(name, l)
		}
		m.mu.Unlock()
		spoke = spoke || n > 0
		if err != nil {
			return spoke, err
		}
	}
}

// heard notes that a launcher lives, also if it was thought lost, so that this host is not cut
// off, and has it looked after. m.mu is held.
func (m *Member) heard(name string, l *life) {
	m.alone.Store(false)
	if l.lost && !l.left {
		delete(m.lost, name)
	}
	l.heard, l.lost = time.Now(), false
	l.spoke = l.heard
	if !l.judged && !m.closing {
		l.judged = true
		m.wg.Go(func() { m.judge(name, l) })
	}
}

// lookAfter has a launcher looked after that has no life line yet, as if it had just
// spoken.
func (m *Member) lookAfter(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lives[name] == nil {
		l := &life{}
		m.lives[name] = l
		m.heard(name, l)
	}
}

// acknowledges says whether the other host's kernel has lately taken what is sent over
// the life line, which it does whatever becomes of the launcher.
func (m *Member) acknowledges(l *life) bool {
	m.mu.Lock()
	c := l.conn
	m.mu.Unlock()
	s, ok := c.(*secure)
	return ok && lastAcknowledged(s.Conn) < m.silence()
}

// lastAcknowledged is how long ago the other end's kernel has last acknowledged
// something; for ever if that is not known.
func lastAcknowledged(c net.Conn) time.Duration {
	const forever = time.Duration(math.MaxInt64)
	t, ok := c.(*net.TCPConn)
	if !ok {
		return forever
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return forever // it has ended
	}
	var info *unix.TCPInfo
	var inner error
	err = raw.Control(func(fd uintptr) {
		info, inner = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || inner != nil {
		return forever
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond
}

// farewell says that this launcher leaves, and closes the life lines.
func (m *Member) farewell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lives {
		if l.conn == nil {
			continue
		}
		_ = l.conn.SetWriteDeadline(time.Now().Add(pulseInterval))
		_, _ = l.conn.Write([]byte{sayLeave}) // who does not hear it sees the end
		_ = l.conn.Close()
	}
}
