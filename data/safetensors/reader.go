package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"

	"ebtrain/data/atomicfile"
)

// File is an opened safetensors file. It keeps the header in memory and reads
// tensors from its io.ReaderAt.
type File struct {
	r     io.ReaderAt
	start int64 // file offset of the data section
	infos []Info
	index map[string]int
	meta  map[string]string
}

// New reads and checks the header of a file of size bytes.
func New(r io.ReaderAt, size int64) (*File, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("safetensors: %d bytes, expected at least the 8 of the header's length", size)
	}
	if err := readAt(r, length[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: header length at offset 0: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, fmt.Errorf("safetensors: header length %d at offset 0 is over the limit of %d: not a safetensors file", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("safetensors: header of %d bytes at offset 8 does not fit in a file of %d: truncated, so copy it again", n, size)
	}
	header := make([]byte, n)
	if err := readAt(r, header, 8); err != nil {
		return nil, fmt.Errorf("safetensors: header at offset 8: %w", err)
	}
	start := 8 + int64(n)
	infos, meta, err := parseHeader(header, size-start)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f := &File{r: r, start: start, infos: infos, meta: meta, index: make(map[string]int, len(infos))}
	for i, info := range infos {
		f.index[info.Name] = i
	}
	return f, nil
}

// Parse reads a file held in memory. b must not change while the File is used.
func Parse(b []byte) (*File, error) { return New(bytes.NewReader(b), int64(len(b))) }

// ReadFile opens the file at path, gives it to f, and closes it. Errors name
// the path.
func ReadFile(path string, f func(*File) error) error {
	file, err := atomicfile.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	st, err := file.Stat()
	if err != nil {
		return err
	}
	s, err := New(file, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := f(s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Infos lists the tensors in the order of their place in the file. The slice
// is the File's own.
func (f *File) Infos() []Info { return f.infos }

// DataStart is the file offset of the data section.
func (f *File) DataStart() int64 { return f.start }

// Metadata is a copy of the file's metadata; nil if it has none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.meta) }

// Info describes the tensor called name; false if there is none.
func (f *File) Info(name string) (Info, bool) {
	i, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	return f.infos[i], true
}

// Bytes reads the whole tensor called name, little-endian.
func (f *File) Bytes(name string) ([]byte, error) {
	i, ok := f.Info(name)
	if !ok {
		return nil, fmt.Errorf("safetensors: no tensor %q", name)
	}
	b := make([]byte, i.Bytes())
	if err := readAt(f.r, b, f.start+i.Begin); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q at offset %d: %w", name, f.start+i.Begin, err)
	}
	return b, nil
}

// Float32 reads the F32 tensor called name into dst, whose length must be the
// tensor's number of elements.
func (f *File) Float32(name string, dst []float32) error {
	b, err := f.typed(name, F32, len(dst))
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// Float64 reads the F64 tensor called name into dst, whose length must be the
// tensor's number of elements.
func (f *File) Float64(name string, dst []float64) error {
	b, err := f.typed(name, F64, len(dst))
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}

// Int64 reads the I64 tensor called name into dst, whose length must be the
// tensor's number of elements.
func (f *File) Int64(name string, dst []int64) error {
	b, err := f.typed(name, I64, len(dst))
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}

// typed reads a tensor that must have type d and n elements.
func (f *File) typed(name string, d DType, n int) ([]byte, error) {
	i, ok := f.Info(name)
	if !ok {
		return nil, fmt.Errorf("safetensors: no tensor %q", name)
	}
	if i.DType != d || i.Elems() != int64(n) {
		return nil, fmt.Errorf("safetensors: tensor %q is %s%v, expected %s with %d elements", name, i.DType, i.Shape, d, n)
	}
	return f.Bytes(name)
}

// readAt fills b; a short read is io.ErrUnexpectedEOF.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
