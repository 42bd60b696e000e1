package rendezvous

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// maxFrame bounds one message; it holds an exchange of MaxExchange bytes, and the
// sizes and whatever else there is.
const maxFrame = 16 << 20

// Conn carries Messages over a stream socket: four bytes of length, most
// significant first, and the message as Encode makes it. Send may be called from any
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

// header is a message without its blobs, and how many bytes each has.
type header struct {
	Message
	Sizes []int `json:"sizes,omitempty"`
}

// encoding is a message in the form of Encode, once somebody has asked for it.
type encoding struct {
	make sync.Once
	text []byte
	err  error
}

// Encode is m in the form that Decode reads: four bytes of length, most
// significant first, a header as JSON, and the blobs as they are. A long header, as a
// list of many nodes is, is compressed, which the highest bit of its length says. Nobody
// may change what Encode returns: a message to many is encoded once.
func Encode(m Message) ([]byte, error) {
	if m.once == nil {
		return encode(m)
	}
	m.once.make.Do(func() { m.once.text, m.once.err = encode(m) })
	return m.once.text, m.once.err
}

func encode(m Message) ([]byte, error) {
	h := header{Message: m}
	total := 0
	for _, blob := range m.Blobs {
		h.Sizes = append(h.Sizes, len(blob))
		total += len(blob)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if n := 4 + len(text) + total; n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes is longer than %d", n, maxFrame)
	}
	length := uint32(len(text))
	if len(text) > longHeader {
		if text, err = deflate(text); err != nil {
			return nil, err
		}
		length = uint32(len(text)) | compressed
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)+total), length)
	b = append(b, text...)
	for _, blob := range m.Blobs {
		b = append(b, blob...)
	}
	return b, nil
}

const (
	longHeader = 16 << 10 // bytes; shorter ones are not worth it
	compressed = 1 << 31  // in a header's length
)

func deflate(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// inflate undoes deflate, up to the size that a message may have.
func inflate(b []byte) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxFrame+1))
	if err == nil && len(text) > maxFrame {
		err = fmt.Errorf("longer than %d bytes", maxFrame)
	}
	return text, err
}

var errMessage = errors.New("malformed message")

// Decode reads a message, whose blobs are parts of b.
func Decode(b []byte) (Message, error) {
	if len(b) < 4 {
		return Message{}, fmt.Errorf("%w: cut short", errMessage)
	}
	length := binary.BigEndian.Uint32(b)
	text, rest, ok := cut(b[4:], int(length&^compressed))
	if !ok {
		return Message{}, fmt.Errorf("%w: cut short", errMessage)
	}
	if length&compressed != 0 {
		var err error
		if text, err = inflate(text); err != nil {
			return Message{}, fmt.Errorf("%w: its header: %w", errMessage, err)
		}
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return Message{}, fmt.Errorf("%w: %w", errMessage, err)
	}
	for _, n := range h.Sizes {
		blob, left, ok := cut(rest, n)
		if !ok {
			return Message{}, fmt.Errorf("%w: a blob of %d bytes where %d are left", errMessage, n, len(rest))
		}
		h.Blobs, rest = append(h.Blobs, blob), left
	}
	if len(rest) > 0 {
		return Message{}, fmt.Errorf("%w: %d bytes behind its end", errMessage, len(rest))
	}
	return h.Message, h.Check()
}

// cut takes the first n bytes of b, if it has them.
func cut(b []byte, n int) (first, rest []byte, ok bool) {
	if n < 0 || n > len(b) {
		return nil, b, false
	}
	return b[:n:n], b[n:], true
}

// Check says what m lacks, so that nobody else needs to look: an abort or refusal
// has a cause.
func (m Message) Check() error {
	if (m.Kind == KindAbort || m.Kind == KindRefuse || m.Kind == KindFail) && m.Cause == nil {
		return fmt.Errorf("%w: %s without a cause", errMessage, m.Kind)
	}
	return nil
}
