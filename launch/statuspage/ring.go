package statuspage

import (
	"sync/atomic"
	"time"
)

// The last collectives of a rank are a ring in its page: a flight recorder that
// can be read whatever has become of the rank.
const (
	ringSize   = 32 // collectives kept
	kindBytes  = 16
	opBytes    = 8
	typeBytes  = 8
	placeBytes = 64 // of the label

	entryStamp = 0 // 1 + the number of the write, 0 while it is made
	entrySeq   = 1
	entryBegun = 2 // nanoseconds since 1970
	entryEnded = 3 // the same; 0 while it runs
	entryState = 4 // 1 if it failed
	entryLen   = 5
	entryLens  = 6 // of kind, op, type and label, 16 bits each
	entryKind  = 7
	entryOp    = entryKind + kindBytes/8
	entryType  = entryOp + opBytes/8
	entryLabel = entryType + typeBytes/8
	entryWords = entryLabel + placeBytes/8

	ringWords = 1 + ringSize*entryWords // the first is the number of entries ever written
)

// Collective is one of the last collectives of a rank. Texts that are too long are
// cut.
type Collective struct {
	Seq   uint64    `json:"seq"`
	Kind  string    `json:"kind"`            // "all-reduce"
	Op    string    `json:"op,omitempty"`    // "mean"
	Type  string    `json:"type,omitempty"`  // "f32"
	Len   int       `json:"len,omitempty"`   // elements
	Label string    `json:"label,omitempty"` // "generator/bucket 3"
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"` // zero while it runs
	Bad   bool      `json:"bad,omitempty"`  // it failed
}

// Begin says that the rank begins c, and that it has begun all before it.
func (p *Page) Begin(c Collective) {
	kind, op, typ, label := cut(c.Kind, kindBytes), cut(c.Op, opBytes), cut(c.Type, typeBytes), cut(c.Label, placeBytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return
	}
	n := atomic.LoadUint64(&p.words[wordRing])
	e := p.entry(n)
	atomic.StoreUint64(&e[entryStamp], 0)
	atomic.StoreUint64(&e[entrySeq], c.Seq)
	atomic.StoreUint64(&e[entryBegun], uint64(c.Begun.UnixNano()))
	atomic.StoreUint64(&e[entryEnded], 0)
	atomic.StoreUint64(&e[entryState], 0)
	atomic.StoreUint64(&e[entryLen], uint64(c.Len))
	atomic.StoreUint64(&e[entryLens], uint64(len(kind))|uint64(len(op))<<16|uint64(len(typ))<<32|uint64(len(label))<<48)
	storeString(e[entryKind:], kind)
	storeString(e[entryOp:], op)
	storeString(e[entryType:], typ)
	storeString(e[entryLabel:], label)
	atomic.StoreUint64(&e[entryStamp], n+1)
	atomic.StoreUint64(&p.words[wordRing], n+1)
	atomic.StoreUint64(&p.words[wordBegun+2*int(Collectives)], c.Seq+1)
}

// End says that the rank has ended collective seq at a time, and whether it failed.
func (p *Page) End(seq uint64, at time.Time, bad bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return
	}
	n := atomic.LoadUint64(&p.words[wordRing])
	for i := uint64(1); i <= min(n, ringSize); i++ { // it is nearly always the last
		e := p.entry(n - i)
		if atomic.LoadUint64(&e[entrySeq]) != seq {
			continue
		}
		if bad {
			atomic.StoreUint64(&e[entryState], 1)
		}
		atomic.StoreUint64(&e[entryEnded], uint64(at.UnixNano()))
		break
	}
	atomic.StoreUint64(&p.words[wordBegun+2*int(Collectives)+1], seq+1)
}

// Last is up to n of the last collectives, oldest first. What is overwritten while
// it is read is left out.
func (p *Page) Last(n int) []Collective {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return nil
	}
	var all []Collective
	written := atomic.LoadUint64(&p.words[wordRing])
	for k := written - min(written, ringSize, uint64(max(n, 0))); k < written; k++ {
		if c, ok := p.readEntry(k); ok {
			all = append(all, c)
		}
	}
	return all
}

// readEntry reads the entry that write k made, if it is still there and whole.
func (p *Page) readEntry(k uint64) (c Collective, ok bool) {
	e := p.entry(k)
	if atomic.LoadUint64(&e[entryStamp]) != k+1 {
		return c, false
	}
	lens := atomic.LoadUint64(&e[entryLens])
	length := func(shift, most int) int { return min(int(uint16(lens>>shift)), most) }
	c = Collective{
		Seq:   atomic.LoadUint64(&e[entrySeq]),
		Kind:  loadString(e[entryKind:], length(0, kindBytes)),
		Op:    loadString(e[entryOp:], length(16, opBytes)),
		Type:  loadString(e[entryType:], length(32, typeBytes)),
		Len:   int(atomic.LoadUint64(&e[entryLen])),
		Label: loadString(e[entryLabel:], length(48, placeBytes)),
		Begun: time.Unix(0, int64(atomic.LoadUint64(&e[entryBegun]))),
	}
	if at := atomic.LoadUint64(&e[entryEnded]); at != 0 {
		c.Ended = time.Unix(0, int64(at))
	}
	c.Bad = atomic.LoadUint64(&e[entryState]) != 0
	return c, atomic.LoadUint64(&e[entryStamp]) == k+1
}

func (p *Page) entry(k uint64) []uint64 {
	start := wordRing + 1 + int(k%ringSize)*entryWords
	return p.words[start : start+entryWords]
}
