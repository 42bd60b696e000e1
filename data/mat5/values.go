package mat5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// variable reads all of a variable but its values.
func (b *body) variable() (Variable, error) {
	var v Variable
	flags, err := b.part("its flags", 8, miUINT32)
	if err != nil {
		return v, err
	}
	if len(flags) != 8 {
		return v, fmt.Errorf("its flags: %d bytes, expected 8", len(flags))
	}
	word := b.order.Uint32(flags)
	v.Class, v.Complex = Class(word), word&0x0800 != 0
	dims, err := b.part("its sizes", 4*maxDims, miINT32, miUINT32)
	if err != nil {
		return v, err
	}
	if len(dims)%4 != 0 || len(dims) < 8 {
		return v, fmt.Errorf("its sizes: %d bytes, expected 4 for each of two or more", len(dims))
	}
	elems := int64(1)
	for ; len(dims) > 0; dims = dims[4:] {
		d := int64(b.order.Uint32(dims))
		if d > maxElems || elems*d > maxElems {
			return v, fmt.Errorf("its sizes: more than %d values", int64(maxElems))
		}
		elems *= d
		v.Dims = append(v.Dims, int(d))
	}
	name, err := b.part("its name", maxName, miINT8, miUINT8, miUTF8)
	v.Name = string(name)
	return v, err
}

// Values are those of the variable that Next returned last, as float64, which
// holds all but the largest int64 and uint64 exactly. They can be read once.
// Compressed, many take little room in a file: look at Len before.
func (r *Reader) Values() ([]float64, error) {
	t, size, err := r.open()
	if err != nil {
		return nil, err
	}
	raw, err := r.inner.data(t)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, r.wrap(err)
	}
	out := make([]float64, r.current.Len())
	for i := range out {
		out[i] = number(r.order, t.kind, raw[i*size:])
	}
	return out, nil
}

// Bytes reads the values of a variable of unsigned bytes, in place of Values where
// they are too many to be held. It ends with io.EOF if nothing was damaged, and must
// not be used after Next.
func (r *Reader) Bytes() (io.Reader, error) {
	t, _, err := r.open()
	if err != nil {
		return nil, err
	}
	if t.kind != miUINT8 {
		return nil, r.wrap(fmt.Errorf("%v, stored as type %d, expected unsigned bytes", r.current, t.kind))
	}
	if t.small != nil {
		return bytes.NewReader(t.small), r.wrapIf(r.end())
	}
	return &stream{r: r, left: t.size, fill: -t.size & 7}, nil
}

// stream reads the values of a variable from where they are.
type stream struct {
	r    *Reader
	left int64 // bytes of values
	fill int64 // bytes that follow them
}

// Read implements io.Reader.
func (s *stream) Read(dst []byte) (int, error) {
	if s.left == 0 {
		err := s.r.inner.skip(min(s.fill, s.r.inner.n))
		s.fill = 0
		if err == nil {
			err = s.r.end()
		}
		if err != nil {
			return 0, s.r.wrap(err)
		}
		return 0, io.EOF
	}
	n, err := s.r.inner.Read(dst[:min(int64(len(dst)), s.left)])
	s.left -= int64(n)
	if n > 0 {
		return n, nil // an error comes again, and the end of what is compressed may be none
	}
	return 0, s.r.wrapIf(err)
}

// wrapIf is wrap of what may be no error.
func (r *Reader) wrapIf(err error) error {
	if err == nil {
		return nil
	}
	return r.wrap(err)
}

// open is the tag of the values of the variable that Next returned last, and the
// bytes of each of them.
func (r *Reader) open() (tag, int, error) {
	if r.finished {
		return tag{}, 0, errors.New("no variable, or its values were read already")
	}
	r.finished = true
	v := r.current
	if !v.Class.Numeric() || v.Complex {
		return tag{}, 0, r.wrap(fmt.Errorf("%v, expected real numbers", v))
	}
	t, err := r.inner.tag()
	if err != nil {
		return tag{}, 0, r.wrap(err)
	}
	size, ok := sizes[t.kind]
	if !ok || t.size != int64(size)*int64(v.Len()) {
		return tag{}, 0, r.wrap(fmt.Errorf("%v: %d bytes of data of type %d do not fit its sizes: damaged", v, t.size, t.kind))
	}
	return t, size, nil
}

// end reads what follows the values, and so checks the checksum of what was
// compressed.
func (r *Reader) end() error {
	if r.inner.n > 0 {
		return fmt.Errorf("%d more bytes than its values: damaged", r.inner.n)
	}
	if r.unzip == nil {
		return nil
	}
	if n, err := r.unzip.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		if n > 0 {
			return errors.New("more bytes than its values: damaged")
		}
		return err
	}
	return nil
}

// number is one value of a type, as it is stored.
func number(order binary.ByteOrder, kind uint32, raw []byte) float64 {
	switch kind {
	case miINT8:
		return float64(int8(raw[0]))
	case miUINT8:
		return float64(raw[0])
	case miINT16:
		return float64(int16(order.Uint16(raw)))
	case miUINT16:
		return float64(order.Uint16(raw))
	case miINT32:
		return float64(int32(order.Uint32(raw)))
	case miUINT32:
		return float64(order.Uint32(raw))
	case miSINGLE:
		return float64(math.Float32frombits(order.Uint32(raw)))
	case miINT64:
		return float64(int64(order.Uint64(raw)))
	case miUINT64:
		return float64(order.Uint64(raw))
	}
	return math.Float64frombits(order.Uint64(raw))
}
