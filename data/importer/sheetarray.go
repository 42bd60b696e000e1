package importer

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
)

// size is how many bytes a value takes that is a number, 0 if it is none that is read.
func (a npy) size() int64 {
	if len(a.kind) == 3 && a.kind[1] == 'f' && (a.kind[0] == '<' || a.kind[0] == '>') && (a.kind[2] == '4' || a.kind[2] == '8') {
		return int64(a.kind[2] - '0')
	}
	return a.width()
}

// number is the number in b, of size bytes.
func (a npy) number(b []byte) float64 {
	if a.kind[1] != 'f' {
		if v := a.integer(b); v >= 0 || a.kind[1] == 'i' {
			return float64(v)
		}
		return float64(uint64(a.integer(b)))
	}
	var order binary.ByteOrder = binary.LittleEndian
	if a.kind[0] == '>' {
		order = binary.BigEndian
	}
	if len(b) == 4 {
		return float64(math.Float32frombits(order.Uint32(b)))
	}
	return math.Float64frombits(order.Uint64(b))
}

// arrayRecords are the rows of an array.
func (s *sheet) arrayRecords(ctx context.Context) iter.Seq2[record, error] {
	return sequence(func(give func(record) error) error {
		return withNPY(ctx, s.path, s.same, func(values io.Reader) error { return s.arrayRows(values, give) })
	})
}

// same says whether a header is still that of the array.
func (s *sheet) same(h npy) error {
	if h.kind != s.kind.kind || h.text() != s.kind.text() {
		return errChanged
	}
	return nil
}

// arrayRows gives the rows of values, all in the same record.
func (s *sheet) arrayRows(values io.Reader, give func(record) error) error {
	rec := record{path: s.path, numbers: make([]float64, len(s.names))}
	size := int(s.kind.size())
	raw := make([]byte, size*len(s.names))
	for rec.number = range s.kind.shape[0] {
		if _, err := io.ReadFull(values, raw); err != nil {
			return fmt.Errorf("row %d: %w", rec.number, short(err))
		}
		for i := range rec.numbers {
			rec.numbers[i] = s.kind.number(raw[i*size : (i+1)*size])
		}
		if s.labels != nil {
			rec.label = s.labels[rec.number]
		}
		if err := give(rec); err != nil {
			return err
		}
	}
	return nil
}
