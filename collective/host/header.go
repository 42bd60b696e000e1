package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/schedule"
)

// header is what ranks compare before they touch data.
type header struct {
	kind  collective.Kind
	op    collective.Op
	dtype collective.DType
	root  int32
	len   uint64
	seq   uint64
}

// label is the begin of a Request's label, padded with zeros. It is for
// people, and not compared.
type label [96]byte

// named is a header with its label.
type named struct {
	header
	label label
}

func labelOf(s string) (l label) {
	copy(l[:], s)
	return l
}

// Barriers have no root; these stand there for what is no barrier of Start's.
const (
	markWithin = 1 // of Within
	markRoll   = 2 // of a roll call
)

func markedHeader(seq uint64, mark int32) header {
	return header{kind: collective.Barrier, root: mark, seq: seq}
}

// calls says whether h is that of a roll call.
func (h header) calls() bool { return h == markedHeader(h.seq, markRoll) }

// headerOf keeps what req's kind looks at, so that an Op left over in a
// Barrier is no difference.
func headerOf(seq uint64, req collective.Request) header {
	h := header{kind: req.Kind, seq: seq}
	if req.Kind == collective.Barrier {
		return h
	}
	h.dtype, h.len = req.Vec.Type, uint64(req.Vec.Len)
	switch req.Kind {
	case collective.AllReduce, collective.ReduceScatter:
		h.op = req.Op
	case collective.Broadcast:
		h.root = int32(req.Root)
	}
	return h
}

func (h named) String() string {
	what := fmt.Sprintf("alloc of %d bytes", h.len)
	if h.kind != collective.Allocation {
		what = collective.Request{Kind: h.kind, Op: h.op, Root: int(h.root),
			Vec: collective.Vec{Type: h.dtype, Len: int(h.len)}}.String()
	}
	if l := h.label.String(); l != "" {
		what += fmt.Sprintf(" %q", l)
	}
	return fmt.Sprintf("%s (seq %d)", what, h.seq)
}

func (l label) String() string {
	n := 0
	for n < len(l) && l[n] != 0 {
		n++
	}
	return string(l[:n])
}

// A localHeader also says where the rank's vector lies, for its own host.
type localHeader struct {
	header
	seg    int32 // number of the segment, from 0; -1 outside of all
	offset uint64
}

func (h localHeader) located() bool { return h.seg >= 0 }

// The header as hosts send it to each other, little endian:
//
//	bytes 0–3    magic "EBCH"
//	      4–7    kind, op, dtype, 0
//	      8–11   root
//	      12–15  0
//	      16–23  len
//	      24–31  seq
//	      32–127 label
const (
	headerBytes = schedule.HeaderBytes
	headerMagic = "EBCH"
)

func (h named) encode(b *[headerBytes]byte) {
	copy(b[:], headerMagic)
	b[4], b[5], b[6], b[7] = byte(h.kind), byte(h.op), byte(h.dtype), 0
	binary.LittleEndian.PutUint32(b[8:], uint32(h.root))
	binary.LittleEndian.PutUint32(b[12:], 0)
	binary.LittleEndian.PutUint64(b[16:], h.len)
	binary.LittleEndian.PutUint64(b[24:], h.seq)
	copy(b[32:], h.label[:])
}

var errHeader = errors.New("not a collective's header: the stream is out of step")

func decodeHeader(b *[headerBytes]byte) (named, error) {
	if string(b[:4]) != headerMagic || b[7] != 0 || binary.LittleEndian.Uint32(b[12:]) != 0 {
		return named{}, errHeader
	}
	h := named{header: header{
		kind:  collective.Kind(b[4]),
		op:    collective.Op(b[5]),
		dtype: collective.DType(b[6]),
		root:  int32(binary.LittleEndian.Uint32(b[8:])),
		len:   binary.LittleEndian.Uint64(b[16:]),
		seq:   binary.LittleEndian.Uint64(b[24:]),
	}, label: label(b[32:])}
	if h.kind == 0 || h.kind > collective.Broadcast && h.kind != collective.Allocation || h.len >= 1<<62 || h.root < 0 {
		return named{}, errHeader
	}
	return h, nil
}
