package graph

import (
	"cmp"
	"slices"
)

// piece is a value that is zero but for the entries lo … hi of one axis, which are of.
type piece struct {
	whole, of    ID
	axis, lo, hi int
}

// pieceOf says whether d, made by Pad, is a piece: the cotangent of what was cut on
// one axis.
func (b *Builder) pieceOf(d ID) (c piece, ok bool) {
	n := b.Node(d)
	pad, ok := n.Op.(Pad)
	if !ok {
		return piece{}, false
	}
	c = piece{whole: d, of: n.In[0], axis: -1}
	for i := range pad.Lo.Rank() {
		switch {
		case pad.Gap.At(i) > 0 || c.axis >= 0 && pad.Lo.At(i)+pad.Hi.At(i) > 0:
			return piece{}, false
		case pad.Lo.At(i)+pad.Hi.At(i) > 0:
			c.axis, c.lo = i, pad.Lo.At(i)
			c.hi = c.lo + b.Shape(c.of).At(i)
		}
	}
	return c, c.axis >= 0
}

// pieces are some of one shape that lie side by side on one axis, in order. Their sum
// is one Concat.
type pieces []piece

// with is the list with another piece in its place; false if that overlaps one, or is
// of another axis.
func (l pieces) with(c piece) (pieces, bool) {
	if len(l) > 0 && l[0].axis != c.axis {
		return l, false
	}
	at, _ := slices.BinarySearchFunc(l, c, func(x, c piece) int { return cmp.Compare(x.lo, c.lo) })
	if at > 0 && l[at-1].hi > c.lo || at < len(l) && c.hi > l[at].lo {
		return l, false
	}
	return slices.Insert(l, at, c), true
}

// sum is the sum of the list, which has a piece at least: each number is that of the
// one piece that has it. Added up, zeros that are negative would become positive.
func (l pieces) sum(b *Builder) ID {
	if len(l) == 1 {
		return l[0].whole
	}
	t, axis, at := b.Type(l[0].whole), l[0].axis, 0
	var in []ID
	zerosTo := func(end int) {
		if end > at {
			in = append(in, b.Zeros(Type{t.DType, t.Shape.With(axis, end-at)}))
		}
	}
	for _, c := range l {
		zerosTo(c.lo)
		in, at = append(in, c.of), c.hi
	}
	zerosTo(t.Shape.At(axis))
	return b.Concat(axis, in...)
}
