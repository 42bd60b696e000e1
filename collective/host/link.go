package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

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
