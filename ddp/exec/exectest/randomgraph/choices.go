package randomgraph

import "math/rand/v2"

// Choices are what a program is grown from.
type Choices struct {
	rnd  *rand.Rand
	data []byte // where rnd is nil; behind its end everything is 0
}

// FromSeed are endless choices named by seed.
func FromSeed(seed uint64) *Choices {
	return &Choices{rnd: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// FromBytes are the choices of a fuzz target: a byte each. A shorter text is a
// smaller program.
func FromBytes(data []byte) *Choices { return &Choices{data: data} }

// n is an integer below max, which is positive.
func (c *Choices) n(max int) int {
	if c.rnd != nil {
		return c.rnd.IntN(max)
	}
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % max
}

// one says yes once in n times.
func (c *Choices) one(n int) bool { return c.n(n) == n-1 }

// pick is one of a list.
func pick[E any](c *Choices, list ...E) E { return list[c.n(len(list))] }
