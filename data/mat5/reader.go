package mat5

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const headerBytes = 128

// Reader reads the variables of a file one after another.
type Reader struct {
	in       *bufio.Reader
	order    binary.ByteOrder
	at       int64 // offset of the current element
	next     int64 // offset of the element after it
	outer    body  // the current element as it lies in the file
	inner    body  // its variable, not compressed
	unzip    io.ReadCloser
	current  Variable
	finished bool // the current element's values are read, or there is none
}

// NewReader reads the header of r.
func NewReader(r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var head [headerBytes]byte
	n, err := io.ReadFull(in, head[:])
	if err != nil && !ended(err) {
		return nil, err
	}
	if n < len(head) && bytes.HasPrefix(head[:], []byte("MATLAB")) {
		return nil, fmt.Errorf("it has %d bytes, and its head alone %d: it was cut short, so copy or download it again", n, len(head))
	}
	if n >= 4 && (head[0] == 0 || head[1] == 0 || head[2] == 0 || head[3] == 0) {
		return nil, errors.New("not a MAT-file of level 5 (its text begins with a zero byte, as in level 4); save it in MATLAB with -v7")
	}
	var order binary.ByteOrder
	switch string(head[126:]) {
	case "IM":
		order = binary.LittleEndian
	case "MI":
		order = binary.BigEndian
	default:
		return nil, fmt.Errorf("not a MAT-file of level 5 (no %q or %q at offset 126; it begins with %q)", "MI", "IM", head[:min(n, 8)])
	}
	switch v := order.Uint16(head[124:]); v {
	case 0x0100:
	case 0x0200:
		return nil, errors.New("a MAT-file of version 7.3 (HDF5), expected level 5; save it in MATLAB with -v7")
	default:
		return nil, fmt.Errorf("a MAT-file of version %#04x, expected level 5, 0x0100", v)
	}
	return &Reader{in: in, order: order, next: headerBytes, finished: true}, nil
}

// Next goes to the next variable; io.EOF after the last one.
func (r *Reader) Next() (Variable, error) {
	if err := r.leave(); err != nil {
		return Variable{}, r.wrap(err)
	}
	r.at, r.finished = r.next, true
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		return Variable{}, io.EOF
	}
	v, err := r.enter()
	if err != nil {
		return Variable{}, r.wrap(err)
	}
	v.Offset, r.current, r.finished = r.at, v, false
	return v, nil
}

// leave goes to the end of the current element.
func (r *Reader) leave() error {
	n := r.outer.n
	if n == 0 {
		return nil
	}
	return r.outer.skip(n)
}

// enter opens the element at hand.
func (r *Reader) enter() (Variable, error) {
	r.outer = body{r.in, 8, r.order}
	t, err := r.outer.tag()
	if err != nil {
		return Variable{}, err
	}
	if t.small != nil {
		return Variable{}, fmt.Errorf("a small element of type %d, expected a variable: damaged", t.kind)
	}
	r.outer.n, r.next = t.size, r.at+8+t.size
	switch t.kind {
	case miMATRIX:
		r.unzip, r.inner = nil, r.outer
		r.inner.r = &r.outer
	case miCOMPRESSED:
		if err := r.decompress(); err != nil {
			return Variable{}, err
		}
	default:
		return Variable{}, fmt.Errorf("an element of type %d, expected a variable: damaged", t.kind)
	}
	return r.inner.variable()
}

// decompress begins to decompress the current element.
func (r *Reader) decompress() (err error) {
	if r.unzip, err = zlib.NewReader(&r.outer); err != nil {
		return err
	}
	r.inner = body{r.unzip, 8, r.order}
	t, err := r.inner.tag()
	if err != nil {
		return err
	}
	if t.kind != miMATRIX || t.small != nil {
		return fmt.Errorf("a compressed element of type %d, expected a variable: damaged", t.kind)
	}
	r.inner.n = t.size
	return nil
}

// Read implements io.Reader for what lies inside.
func (b *body) Read(dst []byte) (int, error) {
	if b.n == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(dst[:min(int64(len(dst)), b.n)])
	b.n -= int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// wrap says where err happened. What ends too soon is the file, unless it holds
// all of the element.
func (r *Reader) wrap(err error) error {
	if ended(err) {
		err = errDamaged
		if _, gone := r.in.Peek(1); r.outer.n > 0 && gone != nil {
			err = errors.New("the file ends too soon: it was cut short, so copy or download it again")
		}
	}
	return fmt.Errorf("element at offset %d: %w", r.at, err)
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
