package member

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

// reel is a connection over which comes what was written to it.
type reel struct {
	net.Conn
	*bytes.Buffer
}

func (t reel) Read(b []byte) (int, error)  { return t.Buffer.Read(b) }
func (t reel) Write(b []byte) (int, error) { return t.Buffer.Write(b) }
func (t reel) Close() error                { return nil }
func (t reel) SetDeadline(time.Time) error { return nil }

// deaf takes what is written to it for said.
type deaf struct{ reel }

func (deaf) Write(b []byte) (int, error) { return len(b), nil }

// Whatever a stranger says, it is not let in.
func FuzzStranger(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, nonceBytes), bytes.Repeat([]byte{2}, 64))
	f.Fuzz(func(t *testing.T, nonce, proofs []byte) {
		c := deaf{reel{Buffer: bytes.NewBuffer(append(nonce, proofs...))}}
		if s, err := testSecret.answer(c); err == nil {
			t.Errorf("let in: %v", s)
		}
	})
}

// Records that were not sealed by the other end are not read.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{0, 0, 0, 17, 9, 9})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := testSecret.seal(reel{Buffer: bytes.NewBuffer(in)}, make([]byte, 2*nonceBytes), "listener", "dialer")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Read(make([]byte, 10)); err == nil {
			t.Errorf("%d bytes were read of %x", n, in)
		}
	})
}

// What a launcher sends over its link is taken in order and once, or ends the link.
func FuzzLink(f *testing.F) {
	text, err := rendezvous.Encode(rendezvous.Message{Kind: rendezvous.KindExchange, Name: "x", Blobs: [][]byte{{1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(frame{frameMessage, 1, text}.encode(), frame{kind: frameFarewell}.encode()...))
	f.Add(append(frame{frameAck, 1 << 63, nil}.encode(), frame{frameMessage, 0, text}.encode()...))
	f.Add([]byte{frameMessage, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		wire := reel{Buffer: &bytes.Buffer{}}
		nonces := make([]byte, 2*nonceBytes)
		x, err := testSecret.seal(wire, nonces, "dialer", "listener")
		if err != nil {
			t.Fatal(err)
		}
		y, err := testSecret.seal(wire, nonces, "listener", "dialer")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Write(in); err != nil {
			t.Fatal(err)
		}
		l := newLink("x")
		if err := l.put(rendezvous.Message{Kind: rendezvous.KindEnd}); err != nil {
			t.Fatal(err)
		}
		taken := uint64(0)
		err = l.read(y, func(rendezvous.Message) { taken++ })
		if err == nil || l.got() != taken || !l.pending() || errors.Is(err, io.EOF) && wire.Len() > 0 {
			t.Errorf("%x: %v, %d messages taken, number %d, pending %v", in, err, taken, l.got(), l.pending())
		}
	})
}
