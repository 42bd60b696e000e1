package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// placeSlowly is place without pieces.
func placeSlowly(slots []slot, bucket bool) (size int) {
	var order, placed []int
	for i, s := range slots {
		if s.bucket == bucket && s.bytes > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slots[b].bytes, slots[a].bytes) })
	for _, i := range order {
		s := &slots[i]
		at, best, end := -1, 0, 0
		for _, j := range placed {
			t := &slots[j]
			if t.last < s.first || s.last < t.first {
				continue
			}
			if gap := t.offset - end; gap >= s.bytes && (at < 0 || gap < best) {
				at, best = end, gap
			}
			end = max(end, t.offset+t.bytes)
		}
		if at < 0 {
			at = end
		}
		s.offset = at
		size = max(size, at+s.bytes)
		placed = append(placed, i)
		slices.SortStableFunc(placed, func(a, b int) int { return cmp.Compare(slots[a].offset, slots[b].offset) })
	}
	return size
}

// lifetimes are slots of one of several kinds of programs.
func lifetimes(r *rand.Rand) []slot {
	n, steps := 1+r.IntN(600), 1+r.IntN(400)
	sizes := 1 + r.IntN(12)
	nested, brief := r.IntN(2) == 0, r.IntN(2) == 0
	list := make([]slot, n)
	for i := range list {
		s := &list[i]
		s.first, s.bytes, s.bucket = r.IntN(steps), Align*r.IntN(1+sizes), r.IntN(10) == 0
		switch {
		case nested && r.IntN(3) > 0: // kept for its gradient
			s.first = r.IntN(1 + steps/2)
			s.last = steps - s.first
		case brief:
			s.last = s.first + r.IntN(4)
		default:
			s.last = s.first + r.IntN(steps)
		}
	}
	return list
}

// Places are those of the search that looks at every slot.
func TestPlace(t *testing.T) {
	pieces := 0
	for seed := range uint64(300) {
		slots := lifetimes(rand.New(rand.NewPCG(seed, 9)))
		pieces = max(pieces, len(slots)/mostPlaced)
		slow := slices.Clone(slots)
		for _, bucket := range []bool{false, true} {
			if got, want := place(slots, bucket), placeSlowly(slow, bucket); got != want {
				t.Fatalf("seed %d, buckets %v: %d bytes, want %d", seed, bucket, got, want)
			}
		}
		for i := range slots {
			if slots[i] != slow[i] {
				t.Fatalf("seed %d, slot %d: got %+v, want %+v", seed, i, slots[i], slow[i])
			}
		}
	}
	if pieces < 2 {
		t.Error("no program fills two pieces")
	}
}
