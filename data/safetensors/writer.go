package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// Tensor is a tensor in memory: Data is little-endian, row-major.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
	Data  []byte
}

// Float32s makes an F32 tensor from values; the copy is little-endian.
func Float32s(name string, shape []int64, values []float32) Tensor {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return Tensor{Name: name, DType: F32, Shape: shape, Data: b}
}

// Float64s makes an F64 tensor from values; the copy is little-endian.
func Float64s(name string, shape []int64, values []float64) Tensor {
	b := make([]byte, 0, 8*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return Tensor{Name: name, DType: F64, Shape: shape, Data: b}
}

// Plan fixes the place of each tensor and makes the header's bytes, its length
// included. Begin and End of the given infos are ignored; the infos returned
// are in file order with both set.
func Plan(infos []Info, meta map[string]string) (header []byte, placed []Info, err error) {
	placed = slices.Clone(infos)
	slices.SortFunc(placed, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	seen := map[string]bool{}
	for i := range placed {
		p := &placed[i]
		n, err := byteLen(p.DType, p.Shape)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("safetensors: tensor %q: %w", p.Name, err)
		case p.Name == metadataKey || !utf8.ValidString(p.Name):
			return nil, nil, fmt.Errorf("safetensors: %q cannot be a tensor's name", p.Name)
		case seen[p.Name]:
			return nil, nil, fmt.Errorf("safetensors: two tensors are named %q", p.Name)
		case n > math.MaxInt64-at:
			return nil, nil, fmt.Errorf("safetensors: tensor %q: the file would be over 2^63 bytes", p.Name)
		}
		seen[p.Name] = true
		p.Begin, p.End = at, at+n
		at = p.End
	}
	text, err := headerJSON(placed, meta)
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxHeader {
		return nil, nil, fmt.Errorf("safetensors: header of %d bytes is over the limit of %d", len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), placed, nil
}

// headerJSON is the header without its length, padded to a multiple of 8.
func headerJSON(placed []Info, meta map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(meta) > 0 {
		for k, v := range meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("safetensors: metadata %q is not valid UTF-8", k)
			}
		}
		if err := writeField(&b, metadataKey, meta); err != nil { // maps marshal with sorted keys
			return nil, err
		}
	}
	for _, p := range placed {
		shape := p.Shape
		if shape == nil {
			shape = []int64{}
		}
		offsets := []int64{p.Begin, p.End}
		if err := writeField(&b, p.Name, entry{&p.DType, &shape, &offsets}); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}

// writeField appends "key":value, after a comma unless it is the first.
func writeField(b *bytes.Buffer, key string, value any) error {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(key); err != nil {
		return fmt.Errorf("safetensors: name %q: %w", key, err)
	}
	b.Truncate(b.Len() - 1) // Encode ends with a newline
	b.WriteByte(':')
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("safetensors: header of %q: %w", key, err)
	}
	b.Truncate(b.Len() - 1)
	return nil
}

// Writer writes a file as a stream: the tensors of Infos, one after another, in
// that order, each in pieces of any length.
type Writer struct {
	w       io.Writer
	infos   []Info
	written int64 // bytes of the data section
	end     int64 // bytes it must have
}

// NewWriter writes the header. Begin and End of infos are ignored.
func NewWriter(w io.Writer, infos []Info, meta map[string]string) (*Writer, error) {
	header, placed, err := Plan(infos, meta)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	s := &Writer{w: w, infos: placed}
	if len(placed) > 0 {
		s.end = placed[len(placed)-1].End
	}
	return s, nil
}

// Infos is the order in which the tensors' bytes must be written.
func (s *Writer) Infos() []Info { return s.infos }

// Write appends bytes of the data section.
func (s *Writer) Write(b []byte) (int, error) {
	if int64(len(b)) > s.end-s.written {
		return 0, fmt.Errorf("safetensors: %d bytes at data offset %d, but the header promises only %d in all", len(b), s.written, s.end)
	}
	n, err := s.w.Write(b)
	s.written += int64(n)
	return n, err
}

// Close checks that every promised byte was written. It does not close the
// underlying writer.
func (s *Writer) Close() error {
	if s.written == s.end {
		return nil
	}
	for _, i := range s.infos {
		if s.written < i.End {
			return fmt.Errorf("safetensors: tensor %q: the data ends at offset %d, expected %d", i.Name, s.written, i.End)
		}
	}
	return errors.New("safetensors: more bytes than the header promises") // Write refuses them
}

// Write writes the tensors and metadata as one file; the order of tensors does
// not matter.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	infos := make([]Info, len(tensors))
	byName := make(map[string][]byte, len(tensors))
	for i, t := range tensors {
		infos[i] = Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
		n, err := byteLen(t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		if n != int64(len(t.Data)) {
			return fmt.Errorf("safetensors: tensor %q: %d bytes of data, but %s%v has %d", t.Name, len(t.Data), t.DType, t.Shape, n)
		}
		byName[t.Name] = t.Data
	}
	s, err := NewWriter(w, infos, meta)
	if err != nil {
		return err
	}
	for _, i := range s.Infos() {
		if _, err := s.Write(byName[i.Name]); err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", i.Name, err)
		}
	}
	return s.Close()
}
