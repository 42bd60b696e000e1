package mat5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// body is the inside of an element: n more bytes of r.
type body struct {
	r     io.Reader
	n     int64
	order binary.ByteOrder
}

// tag is the head of an element.
type tag struct {
	kind  uint32
	size  int64
	small []byte // the data of an element of at most 4 bytes, stored in its tag
}

// errDamaged says that sizes within an element disagree.
var errDamaged = errors.New("it ends within its own parts: damaged")

// read fills dst.
func (b *body) read(dst []byte) error {
	if int64(len(dst)) > b.n {
		return errDamaged
	}
	n, err := io.ReadFull(b.r, dst)
	b.n -= int64(n)
	return err
}

// skip leaves out n bytes.
func (b *body) skip(n int64) error {
	if n > b.n {
		return errDamaged
	}
	done, err := io.CopyN(io.Discard, b.r, n)
	b.n -= done
	return err
}

// tag reads a tag.
func (b *body) tag() (tag, error) {
	var raw [8]byte
	if err := b.read(raw[:]); err != nil {
		return tag{}, err
	}
	first := b.order.Uint32(raw[:])
	if n := first >> 16; n != 0 {
		if n > 4 {
			return tag{}, fmt.Errorf("a small element of %d bytes, expected at most 4: damaged", n)
		}
		return tag{first & 0xffff, int64(n), raw[4 : 4+n]}, nil
	}
	return tag{kind: first, size: int64(b.order.Uint32(raw[4:]))}, nil
}

// data reads the bytes after a tag, and what fills them up to a multiple of 8.
// The slice grows with what is there: a tag may lie.
func (b *body) data(t tag) ([]byte, error) {
	if t.small != nil {
		return t.small, nil
	}
	if t.size > b.n {
		return nil, errDamaged
	}
	var out bytes.Buffer
	n, err := io.CopyN(&out, b.r, t.size)
	b.n -= n
	if err != nil {
		return nil, err
	}
	return out.Bytes(), b.skip(min(-t.size&7, b.n))
}

// part reads a whole element of one of the given types and at most limit bytes.
func (b *body) part(what string, limit int64, kinds ...uint32) ([]byte, error) {
	t, err := b.tag()
	if err == nil {
		err = t.check(limit, kinds)
	}
	var raw []byte
	if err == nil {
		raw, err = b.data(t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return raw, nil
}

func (t tag) check(limit int64, kinds []uint32) error {
	for _, k := range kinds {
		if t.kind == k {
			if t.size > limit {
				return fmt.Errorf("%d bytes, expected at most %d", t.size, limit)
			}
			return nil
		}
	}
	return fmt.Errorf("data of type %d, expected %v", t.kind, kinds)
}
