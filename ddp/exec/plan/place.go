package plan

import (
	"cmp"
	"slices"
)

// place gives each slot of one memory an offset such that slots in use at the
// same step do not overlap: largest first, each into the tightest gap. It
// returns the size of the memory.
func place(slots []slot, bucket bool) (size int) {
	var order []int
	for i, s := range slots {
		if s.bucket == bucket && s.bytes > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slots[b].bytes, slots[a].bytes) })
	var p placed
	for _, i := range order {
		s := &slots[i]
		s.offset = p.tightest(s)
		p.insert(taken{s.first, s.last, s.offset, s.offset + s.bytes})
		size = max(size, s.offset+s.bytes)
	}
	return size
}

// taken is a slot that has its place, from offset to end.
type taken struct{ first, last, offset, end int }

// placed are slots that have their places, by offset, in pieces. What is known of a
// piece as a whole mostly spares the look at each of its slots: of an unrolled step,
// whose values wait for their gradients, whole pieces are in use at a step, or none.
type placed []*placedPiece

// placedPiece is some slots, neighbours by offset.
type placedPiece struct {
	list               []taken
	opens, closes      int // the first step of all, the last step of all
	allOpen, stillOpen int // from allOpen to stillOpen all of them are in use, if that is a time
	widest, end        int // the widest gap between them; where the last ends
}

// mostPlaced is how many slots a piece has at most.
const mostPlaced = 64

// tightest is where s fits: the first of the tightest gaps between slots that are in use
// as it is, or behind all of them.
func (p placed) tightest(s *slot) int {
	at, best, end := -1, 0, 0
	before := func(offset int) {
		if gap := offset - end; gap >= s.bytes && (at < 0 || gap < best) {
			at, best = end, gap
		}
	}
	for _, b := range p {
		switch {
		case b.closes < s.first || s.last < b.opens: // nobody is in its way
		case b.allOpen <= s.last && s.first <= b.stillOpen && b.widest < s.bytes: // all are, and leave no room
			before(b.list[0].offset)
			end = max(end, b.end)
		default:
			for _, t := range b.list {
				if s.first <= t.last && t.first <= s.last {
					before(t.offset)
					end = max(end, t.end)
				}
			}
		}
	}
	if at < 0 {
		return end
	}
	return at
}

// insert puts t into its piece, which is cut in two once it is too long.
func (p *placed) insert(t taken) {
	k, found := slices.BinarySearchFunc(*p, t.offset, func(b *placedPiece, at int) int { return cmp.Compare(b.list[0].offset, at) })
	if !found && k > 0 {
		k--
	}
	if k == len(*p) {
		*p = append(*p, &placedPiece{})
	}
	b := (*p)[k]
	i, _ := slices.BinarySearchFunc(b.list, t.offset, func(t taken, at int) int { return cmp.Compare(t.offset, at) })
	b.list = slices.Insert(b.list, i, t)
	if n := len(b.list); n > mostPlaced {
		rest := &placedPiece{list: slices.Clone(b.list[n/2:])}
		rest.sum()
		b.list = b.list[:n/2]
		*p = slices.Insert(*p, k+1, rest)
	}
	b.sum()
}

// sum finds what is known of a piece.
func (b *placedPiece) sum() {
	t := b.list[0]
	b.opens, b.closes, b.allOpen, b.stillOpen, b.widest, b.end = t.first, t.last, t.first, t.last, 0, t.end
	for _, t := range b.list[1:] {
		b.opens, b.allOpen = min(b.opens, t.first), max(b.allOpen, t.first)
		b.closes, b.stillOpen = max(b.closes, t.last), min(b.stillOpen, t.last)
		b.widest, b.end = max(b.widest, t.offset-b.end), max(b.end, t.end)
	}
}
