package rendezvous

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
)

// maxFrame bounds one message on a socket; it holds an exchange of
// MaxExchange bytes in base64.
const maxFrame = 16 << 20

// Conn carries Messages over a stream socket: four bytes of length, most
// significant first, and the message as JSON. Send may be called from any
// goroutine, Receive from one at a time.
type Conn struct {
	mu sync.Mutex
	c  net.Conn
}

// NewConn wraps c, which the Conn then owns.
func NewConn(c net.Conn) *Conn { return &Conn{c: c} }

// Send writes m whole.
func (c *Conn) Send(m Message) error {
	frame, err := Encode(m)
	if err != nil {
		return err
	}
	frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.c.Write(frame); err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	return nil
}

// Receive reads the next message; io.EOF means the other end is gone.
func (c *Conn) Receive() (Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.c, head[:]); err != nil {
		return Message{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return Message{}, fmt.Errorf("a message of %d bytes is longer than %d", n, maxFrame)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(c.c, frame); err != nil {
		return Message{}, fmt.Errorf("message cut short: %w", err)
	}
	return Decode(frame)
}

// Close closes the socket; a blocked Receive returns.
func (c *Conn) Close() error { return c.c.Close() }

// Encode is m in the form that Decode reads.
func Encode(m Message) ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil && len(b) > maxFrame {
		err = fmt.Errorf("a message of %d bytes is longer than %d", len(b), maxFrame)
	}
	return b, err
}

// Decode reads a message. An abort or refusal without a cause is an error, so
// that nobody needs to check.
func Decode(b []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("malformed message: %w", err)
	}
	if (m.Kind == KindAbort || m.Kind == KindRefuse || m.Kind == KindFail) && m.Cause == nil {
		return m, fmt.Errorf("malformed message: %s without a cause", m.Kind)
	}
	return m, nil
}
