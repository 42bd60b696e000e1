package member

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"ebtrain/launch/rendezvous"
)

// link carries the messages between this launcher and one other, in order and
// once, over one connection at a time. Every message has a number, from 1, that
// outlives connections: after a broken one, what the other end has not got is
// sent again, and nothing else is.
type link struct {
	peer string

	mu       sync.Mutex
	changed  *sync.Cond // something below has changed
	conn     *secure    // nil while there is none
	queue    [][]byte   // messages that are not acknowledged; the first has number base
	base     uint64
	sent     uint64 // number of the last one written to conn
	received uint64 // number of the last one that came
	acked    uint64 // the last one of which the other end was told on conn
	leaving  bool   // a farewell follows what is queued
	closed   bool
}

func newLink(peer string) *link {
	l := &link{peer: peer, base: 1}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Kinds of frames: one byte, the number (8 bytes, big endian) and, of a message
// and of an introduction, the length (4 bytes) and the text.
const (
	frameIntro    = 'i' // first in both directions; the number is that of the last message received
	frameMessage  = 'm'
	frameAck      = 'a' // all messages up to the number have been received
	frameFarewell = 'f' // nothing follows: the launcher leaves
	frameHead     = 13
	maxFrame      = 17 << 20
)

var errFarewell = errors.New("the launcher has left")

type frame struct {
	kind   byte
	number uint64
	text   []byte
}

func (f frame) encode() []byte {
	b := append(make([]byte, 0, frameHead+len(f.text)), f.kind)
	b = binary.BigEndian.AppendUint64(b, f.number)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.text)))
	return append(b, f.text...)
}

func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[0], number: binary.BigEndian.Uint64(head[1:])}
	n := binary.BigEndian.Uint32(head[9:])
	if n > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes is longer than %d", n, maxFrame)
	}
	f.text = make([]byte, n)
	_, err := io.ReadFull(r, f.text)
	return f, err
}

// put queues a message.
func (l *link) put(msg rendezvous.Message) error {
	text, err := rendezvous.Encode(msg)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && !l.leaving {
		l.queue = append(l.queue, text)
		l.changed.Broadcast()
	}
	return nil
}

// pending reports whether anything is not acknowledged.
func (l *link) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0 && !l.closed
}

// got is the number of the last message received.
func (l *link) got() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.received
}

// run carries messages over c, whose other end has received those up to has,
// until c ends: errFarewell if the other launcher leaves. A connection before it
// is given up. What comes goes to take, one at a time.
func (l *link) run(c *secure, has uint64, take func(rendezvous.Message)) error {
	if err := l.attach(c, has); err != nil {
		return err
	}
	var writing sync.WaitGroup
	writing.Go(func() { l.write(c) })
	err := l.read(c, take)
	l.detach(c)
	writing.Wait()
	return err
}

func (l *link) attach(c *secure, has uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || has+1 < l.base || has >= l.base+uint64(len(l.queue)) {
		return errors.Join(fmt.Errorf("messages %d to %d are left, the other end has got %d", l.base, l.base+uint64(len(l.queue))-1, has), c.Close())
	}
	if l.conn != nil {
		_ = l.conn.Close() // the other end has given it up
	}
	l.conn, l.sent, l.acked = c, has, l.received
	l.drop(has)
	l.changed.Broadcast()
	return nil
}

func (l *link) detach(c *secure) {
	_ = c.Close() // what was on its way is sent again
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.conn = nil
	}
	l.changed.Broadcast()
}

// drop forgets the messages up to number n. l.mu is held.
func (l *link) drop(n uint64) {
	for ; l.base <= n && len(l.queue) > 0; l.base++ {
		l.queue = l.queue[1:]
	}
}

// write sends what there is to be sent over c until c is given up.
func (l *link) write(c *secure) {
	for {
		f, ok := l.next(c)
		if !ok {
			return
		}
		_, err := c.Write(f.encode())
		if err == nil && f.kind == frameFarewell {
			err = c.closeWrite() // the other end reads it, and closes
			if err == nil {
				return
			}
		}
		if err != nil {
			_ = c.Close() // read sees it
			return
		}
	}
}

// next waits for something to send over c; false if c is given up.
func (l *link) next(c *secure) (frame, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.conn == c && !l.closed {
		switch {
		case l.acked < l.received:
			l.acked = l.received
			return frame{kind: frameAck, number: l.acked}, true
		case l.sent+1 < l.base+uint64(len(l.queue)):
			l.sent++
			return frame{kind: frameMessage, number: l.sent, text: l.queue[l.sent-l.base]}, true
		case l.leaving && len(l.queue) == 0:
			return frame{kind: frameFarewell}, true
		}
		l.changed.Wait()
	}
	return frame{}, false
}

// read takes what comes over c until it ends.
func (l *link) read(c *secure, take func(rendezvous.Message)) error {
	for {
		f, err := readFrame(c)
		if err != nil {
			return err
		}
		switch f.kind {
		case frameFarewell:
			return errFarewell
		case frameAck:
			l.mu.Lock()
			l.drop(min(f.number, l.sent))
			l.changed.Broadcast()
			l.mu.Unlock()
		case frameMessage:
			if err := l.receive(f, take); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a frame of unknown kind %q", f.kind)
		}
	}
}

// receive takes a message that is the next one, and leaves out what came before.
// It is acknowledged after it is taken, and again if it comes again: it may have come
// over a connection that broke, after the other end had been told over the next one what
// had come.
func (l *link) receive(f frame, take func(rendezvous.Message)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.number <= l.received:
		l.acked = min(l.acked, f.number-1)
		l.changed.Broadcast()
		return nil
	case f.number != l.received+1:
		return fmt.Errorf("message %d came after message %d", f.number, l.received)
	}
	msg, err := rendezvous.Decode(f.text)
	if err != nil {
		return err
	}
	take(msg)
	l.received = f.number
	l.changed.Broadcast()
	return nil
}

// connected reports whether there is a connection.
func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

// leave says farewell after what is queued has been acknowledged.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
	l.changed.Broadcast()
}

// close gives the link up.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.changed.Broadcast()
}
