package plan

import "iter"

// chains are lists by value, most of them of one entry or none. They lie in two pieces
// of memory, where a map would be many.
type chains[E any] struct {
	newest []int32 // by value: its newest link, from 1; 0 if it has none
	links  []link[E]
}

type link[E any] struct {
	entry E
	older int32
}

// newChains has room for the lists of values below n.
func newChains[E any](n int) chains[E] {
	return chains[E]{newest: make([]int32, n), links: make([]link[E], 0, n/2)}
}

func (c *chains[E]) add(v int, entry E) {
	c.links = append(c.links, link[E]{entry, c.newest[v]})
	c.newest[v] = int32(len(c.links))
}

// of is the list of v, newest first.
func (c *chains[E]) of(v int) iter.Seq[E] {
	return func(yield func(E) bool) {
		for at := c.newest[v]; at > 0; at = c.links[at-1].older {
			if !yield(c.links[at-1].entry) {
				return
			}
		}
	}
}
