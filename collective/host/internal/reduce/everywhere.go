package reduce

import (
	"ebtrain/collective"
	"ebtrain/collective/subnormal"
)

// tile is the number of bytes that are reduced and then copied to the other
// vectors while they are in the first-level cache.
const tile = 16 << 10

// Everywhere does j in place and leaves the result in every vector:
//
//	for i := range vectors[0] {
//		x := op over all v of vectors[v][i], divided by Div if Div > 1
//		for v := range vectors {
//			vectors[v][i] = x
//		}
//	}
//
// From and To are equal, and the vectors do not overlap. The bits are those of
// Run.
func (j Job) Everywhere(vectors [][]byte, s *Scratch) {
	subnormal.Counting(j.Zeros, func() { j.everywhere(vectors, s) })
}

func (j Job) everywhere(vectors [][]byte, s *Scratch) {
	at := 0
	if r, ok := j.factor(); ok {
		at = vectorAll(j.To, vectors, r)
	}
	for n := len(vectors[0]); at < n; at += tile {
		tiles := s.tilesOf(vectors, at, min(at+tile, n))
		j.run(tiles[0], tiles, s)
		for _, t := range tiles[1:] {
			copy(t, tiles[0])
		}
	}
}

// factor is what sums are multiplied by, if that is all there is to it.
func (j Job) factor() (r float64, ok bool) {
	switch {
	case j.Op == collective.Sum:
		return 1, true
	case j.Op == collective.Mean && j.Div&(j.Div-1) == 0: // a power of two has an exact reciprocal
		return 1 / float64(max(j.Div, 1)), true
	}
	return 0, false
}

// tilesOf are bytes lo to hi of each vector.
func (s *Scratch) tilesOf(vectors [][]byte, lo, hi int) [][]byte {
	s.tiles = s.tiles[:0]
	for _, v := range vectors {
		s.tiles = append(s.tiles, v[lo:hi])
	}
	return s.tiles
}
