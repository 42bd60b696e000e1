package member

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// A life line is a TCP connection between a launcher and the coordinator over
// which each says ten times a second that it lives, and at its end that it
// leaves. The kernel closes it however a process ends, so who is killed is known
// at once; a host that is cut off falls silent, which is not yet a verdict: see
// judge.
//
// Both prove that they know the key before anything else. The dialer sends a
// nonce; the listener a nonce and a MAC over both; the dialer its MAC over both
// and its name, the name's length (2 bytes, little endian) and the name.
const (
	pulseInterval = 100 * time.Millisecond
	handshakeWait = 2 * time.Second
	maxCallers    = 256 // handshakes under way: more, and the oldest is dropped
	nonceBytes    = 32

	sayAlive = 'a'
	sayLeave = 'b'
)

// life is what is known of a launcher by its life line.
type life struct {
	conn   net.Conn  // nil if it is broken
	heard  time.Time // when it last said anything
	left   bool      // it has said that it leaves
	lost   bool      // it has been reported
	judged bool      // somebody is looking after it
}

// listenLife opens the coordinator's end.
func (m *Member) listenLife() error {
	ln, err := net.Listen("tcp", net.JoinHostPort(m.addr.String(), "0"))
	if err != nil {
		return fmt.Errorf("listen for the life lines of other launchers: %w", err)
	}
	m.lifeLine = ln
	m.wg.Go(m.acceptLives)
	return nil
}

// lifePort is the port in the coordinator's description of itself.
func lifePort(meta []byte) (port string, coordinator bool) {
	port, coordinator = strings.CutPrefix(string(meta), coordinatorMeta)
	return strings.TrimSpace(port), coordinator
}

// acceptLives takes the life lines of other launchers until Close.
func (m *Member) acceptLives() {
	var callers []net.Conn // may have ended
	for {
		c, err := m.lifeLine.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: strangers' handshakes end soon
			m.cfg.Log.Debug("accept a life line", "error", err)
			time.Sleep(pulseInterval)
			continue
		}
		if callers = append(callers, c); len(callers) > maxCallers {
			m.hangUp(callers[0])
			callers = callers[1:]
		}
		m.wg.Go(func() {
			name, err := m.answer(c)
			if err != nil {
				m.cfg.Log.Debug("a life line was refused", "from", c.RemoteAddr().String(), "error", err)
				_ = c.Close()
				return
			}
			m.live(name, c)
		})
	}
}

// hangUp closes c unless it has become a life line.
func (m *Member) hangUp(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lives {
		if l.conn == c {
			return
		}
	}
	_ = c.Close()
}

// holdLife keeps a life line to the coordinator until Close, or until the
// coordinator has left or is lost.
func (m *Member) holdLife(name, addr string) {
	for {
		d := net.Dialer{Timeout: handshakeWait}
		c, err := d.DialContext(m.ctx, "tcp", addr)
		if err == nil {
			if err = m.greet(c); err == nil {
				m.live(name, c)
			} else {
				_ = c.Close()
			}
		}
		if err != nil {
			m.cfg.Log.Debug("no life line to the coordinator", "error", err)
		}
		m.mu.Lock()
		l := m.lives[name]
		over := l != nil && (l.left || l.lost)
		m.mu.Unlock()
		if over || m.isDone() {
			return
		}
		select {
		case <-m.done:
			return
		case <-time.After(rejoinInterval):
		}
	}
}

func (m *Member) mac(who string, dialer, listener []byte, name string) []byte {
	h := hmac.New(sha256.New, m.cfg.Key)
	fmt.Fprintf(h, "ebtrain life line: %s\x00%s\x00%s\x00", who, m.cfg.Label, name)
	h.Write(dialer)
	h.Write(listener)
	return h.Sum(nil)
}

// greet is the dialer's half of the handshake.
func (m *Member) greet(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(handshakeWait)); err != nil {
		return err
	}
	mine := make([]byte, nonceBytes)
	rand.Read(mine)
	if _, err := c.Write(mine); err != nil {
		return err
	}
	reply := make([]byte, nonceBytes+sha256.Size)
	if _, err := io.ReadFull(c, reply); err != nil {
		return err
	}
	theirs := reply[:nonceBytes]
	if !hmac.Equal(reply[nonceBytes:], m.mac("listener", mine, theirs, "")) {
		return errors.New("the coordinator's life line has another key")
	}
	proof := m.mac("dialer", mine, theirs, m.cfg.Name)
	proof = binary.LittleEndian.AppendUint16(proof, uint16(len(m.cfg.Name)))
	if _, err := c.Write(append(proof, m.cfg.Name...)); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// answer is the listener's half, and the caller's name.
func (m *Member) answer(c net.Conn) (string, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeWait)); err != nil {
		return "", err
	}
	theirs := make([]byte, nonceBytes)
	if _, err := io.ReadFull(c, theirs); err != nil {
		return "", err
	}
	mine := make([]byte, nonceBytes)
	rand.Read(mine)
	if _, err := c.Write(append(mine[:nonceBytes:nonceBytes], m.mac("listener", theirs, mine, "")...)); err != nil {
		return "", err
	}
	proof := make([]byte, sha256.Size+2)
	if _, err := io.ReadFull(c, proof); err != nil {
		return "", err
	}
	name := make([]byte, binary.LittleEndian.Uint16(proof[sha256.Size:]))
	if _, err := io.ReadFull(c, name); err != nil {
		return "", err
	}
	if !hmac.Equal(proof[:sha256.Size], m.mac("dialer", theirs, mine, string(name))) {
		return "", errors.New("it has another key")
	}
	return string(name), c.SetDeadline(time.Time{})
}

// live keeps up the life line c with the launcher called name to its end.
func (m *Member) live(name string, c net.Conn) {
	m.mu.Lock()
	l := m.lives[name]
	if l == nil {
		l = &life{}
		m.lives[name] = l
	}
	if m.closing || l.left || l.conn != nil {
		m.mu.Unlock()
		_ = c.Close()
		return
	}
	l.conn = c
	m.heard(name, l)
	m.mu.Unlock()
	over := make(chan struct{})
	m.wg.Go(func() { m.pulse(c, over) })
	err := m.hear(name, l, c)
	close(over)
	m.mu.Lock()
	l.conn = nil
	killed := !l.left && !m.closing && ended(err)
	m.mu.Unlock()
	_ = c.Close()
	if killed {
		m.report(l, rendezvous.Inbound{From: name, Lost: true, Killed: true})
	}
}

// ended says that err is how a connection ends whose process has ended, on a
// host that lives and says so.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// pulse says that this launcher lives until over or Close. What it says waits
// in a buffer if the network is slow.
func (m *Member) pulse(c net.Conn, over <-chan struct{}) {
	tick := time.NewTicker(pulseInterval)
	defer tick.Stop()
	for {
		if _, err := c.Write([]byte{sayAlive}); err != nil {
			return // hear knows
		}
		select {
		case <-tick.C:
		case <-over:
			return
		case <-m.done:
			return
		}
	}
}

// hear reads what the other end says until its end.
func (m *Member) hear(name string, l *life, c net.Conn) error {
	var b [64]byte
	for {
		n, err := c.Read(b[:])
		m.mu.Lock()
		if n > 0 {
			m.heard(name, l)
			l.left = l.left || strings.IndexByte(string(b[:n]), sayLeave) >= 0
		}
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// heard notes that a launcher lives, also if it was thought lost, and has it
// looked after. m.mu is held.
func (m *Member) heard(name string, l *life) {
	l.heard, l.lost = time.Now(), false
	if !l.judged && !m.closing {
		l.judged = true
		m.wg.Go(func() { m.judge(name, l) })
	}
}

// farewell says that this launcher leaves, and closes the life lines.
func (m *Member) farewell() {
	if m.lifeLine != nil {
		_ = m.lifeLine.Close() // nobody is to come any more
	}
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

// lifeAddr is where the coordinator's life line is.
func lifeAddr(ip net.IP, port string) string {
	if n, err := strconv.Atoi(port); err != nil || n < 1 {
		return ""
	}
	return net.JoinHostPort(ip.String(), port)
}
