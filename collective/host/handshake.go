package host

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"ebtrain/collective/congestion"
)

// The handshake proves to both ends that the other knows the job's key. The
// dialer sends a hello, the listener its own hello and a MAC over both, the
// dialer its MAC over both. Every hello has a fresh nonce, and the two MACs
// differ in their first word, so nothing can be replayed or reflected.
//
// A hello is
//
//	bytes 0–3   magic "EBH1"
//	      4     purpose of the connection
//	      5–8   rank of the sender, little endian
//	      9–40  SHA-256 of the job's name
//	      41–72 nonce
type hello [helloBytes]byte

const (
	helloBytes = 73
	helloMagic = "EBH1"

	// handshakeLimit bounds a listener's half of a handshake, so that a stranger
	// who connects and says nothing holds nothing.
	handshakeLimit = 5 * time.Second
	// silent bounds the strangers' connections, which have not said a hello of this job:
	// the oldest makes room. A rank says it as soon as it is connected, but many may be
	// taken in before the first is read.
	silent = 256
)

// purpose says what a connection is for.
type purpose byte

const (
	forLocal   purpose = 'l' // between a leader and a rank of its host
	forControl purpose = 'c' // between leaders: aborts and farewells
	forData    purpose = 'd' // between leaders: headers and data
)

// identity is what a rank has to prove.
type identity struct {
	rank int
	job  [32]byte
	key  []byte
}

// call names one expected connection.
type call struct {
	purpose purpose
	rank    int
}

func (id identity) hello(p purpose) hello {
	var h hello
	copy(h[:], helloMagic)
	h[4] = byte(p)
	binary.LittleEndian.PutUint32(h[5:], uint32(id.rank))
	copy(h[9:], id.job[:])
	rand.Read(h[41:]) // never fails
	return h
}

var errStranger = errors.New("not a rank of this job")

// read checks all of h but the key, which the MAC proves.
func (id identity) read(h hello) (call, error) {
	if string(h[:4]) != helloMagic {
		return call{}, fmt.Errorf("%w: no hello", errStranger)
	}
	if [32]byte(h[9:41]) != id.job {
		return call{}, fmt.Errorf("%w: it belongs to another job", errStranger)
	}
	rank := binary.LittleEndian.Uint32(h[5:])
	if rank > 1<<30 {
		return call{}, fmt.Errorf("%w: rank %d", errStranger, rank)
	}
	return call{purpose(h[4]), int(rank)}, nil
}

func (id identity) mac(who string, dialer, listener hello) []byte {
	m := hmac.New(sha256.New, id.key)
	m.Write([]byte(who))
	m.Write(dialer[:])
	m.Write(listener[:])
	return m.Sum(nil)
}

const (
	byDialer   = "ebtrain collective: dialer"
	byListener = "ebtrain collective: listener"
)

// greet is the dialer's half. The listener may first wait for the ranks of its host,
// so it is bounded by whoever closes c.
func (id identity) greet(c net.Conn, want call) error {
	mine := id.hello(want.purpose)
	if _, err := c.Write(mine[:]); err != nil {
		return err
	}
	var reply [helloBytes + sha256.Size]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return fmt.Errorf("no proof of the key (has that rank failed, or is the key not the same on all ranks?): %w", err)
	}
	theirs := hello(reply[:helloBytes])
	got, err := id.read(theirs)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: reached rank %d, expected rank %d", errStranger, got.rank, want.rank)
	}
	if !hmac.Equal(reply[helloBytes:], id.mac(byListener, mine, theirs)) {
		return fmt.Errorf("%w: it does not know the key", errStranger)
	}
	_, err = c.Write(id.mac(byDialer, mine, theirs))
	return err
}

// answer is the listener's half.
func (id identity) answer(c net.Conn) (call, error) { return id.answerAfter(c, func() {}) }

// answerAfter is answer that calls heard once the hello is that of a rank of this
// job, whose name nobody else is told.
func (id identity) answerAfter(c net.Conn, heard func()) (call, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return call{}, err
	}
	var theirs hello
	if _, err := io.ReadFull(c, theirs[:]); err != nil {
		return call{}, err
	}
	got, err := id.read(theirs)
	if err != nil {
		return call{}, err
	}
	heard()
	mine := id.hello(got.purpose)
	if _, err := c.Write(append(slices.Clone(mine[:]), id.mac(byListener, theirs, mine)...)); err != nil {
		return call{}, err
	}
	var proof [sha256.Size]byte
	if _, err := io.ReadFull(c, proof[:]); err != nil {
		return call{}, err
	}
	if !hmac.Equal(proof[:], id.mac(byDialer, theirs, mine)) {
		return call{}, fmt.Errorf("%w: it does not know the key", errStranger)
	}
	return got, c.SetDeadline(time.Time{})
}

// dial connects to a rank and proves the key, until ctx ends. A rank that refuses, or goes
// away, has listened before: it has failed, and why is on its way.
func (id identity) dial(ctx context.Context, network, addr string, want call) (net.Conn, error) {
	c, err := connect(ctx, network, addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		pauseFor(ctx, patience)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to rank %d: %w%s", want.rank, err, moreFiles(err))
	}
	end := context.AfterFunc(ctx, func() { _ = c.Close() })
	if err = id.greet(c, want); err != nil && !errors.Is(err, errStranger) {
		pauseFor(ctx, patience)
	}
	if !end() || ctx.Err() != nil { // ctx is over before it begins to close c
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to rank %d at %s: %w", want.rank, addr, err)
	}
	return c, nil
}

// moreFiles is what to do about err, if that is too many open files.
func moreFiles(err error) string {
	if errors.Is(err, syscall.EMFILE) {
		return ": allow every rank more of them (ulimit -n)"
	}
	return ""
}

// pathLimit bounds the tries to reach a host to which there is no path. The kernel says so
// also of one that it has asked for in vain a moment ago, before its cable was back.
const pathLimit = 5 * time.Second

// connect connects to addr, again and again as long as persist says.
func connect(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Control: congestion.Choose}
	return persist(ctx, func() (net.Conn, error) { return d.DialContext(ctx, network, addr) })
}

// persist dials for pathLimit if there is no path, and, until ctx ends, as long as the
// listener's queue is full: TCP waits for that by itself, sockets within a host do not.
func persist(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
	const most = 20 * time.Millisecond
	full := false
	begin := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, most) {
		c, err := dial()
		if errors.Is(err, context.DeadlineExceeded) {
			<-ctx.Done() // the dialer looks at the clock, and may be ahead of ctx
		}
		queued := errors.Is(err, syscall.EAGAIN)
		full = full || queued
		if queued || noPath(err) && time.Since(begin) < pathLimit {
			pauseFor(ctx, pause)
			if ctx.Err() == nil {
				continue
			}
		}
		if full && err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("its queue of connections is full (net.core.somaxconn bounds it): %w", context.Cause(ctx))
		}
		return c, err
	}
}

func noPath(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// pauseFor takes as long as pause, or until ctx ends.
func pauseFor(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
