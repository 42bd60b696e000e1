package sentence

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Batch is sentences of at most L tokens.
type Batch struct {
	Tokens  graph.ID // I32 (n, L)
	Lengths graph.ID // I32 (n); begin and end included, 0 of an empty slot
	n, l    int
}

// Input declares n sentences of at most length tokens.
func Input(c *nn.Context, n, length int) Batch {
	return Batch{
		Tokens:  c.Input(algo.InputTokens, graph.T(graph.I32, n, length)),
		Lengths: c.Input(algo.InputLengths, graph.T(graph.I32, n)),
		n:       n, l: length,
	}
}

// steps is the number of predictions of the longest sentence there can be.
func (b Batch) steps() int { return b.l - 1 }

// column are the tokens from … from+T−1 of every sentence, time-major (T·n).
func (b Batch) columns(c *nn.Context, from int) graph.ID {
	t := b.steps()
	part := c.Slice(b.Tokens, 1, from, from+t, 1)
	return c.Reshape(c.Transpose(part, 1, 0), graph.D(t*b.n))
}

// Counts are how many words are predicted of each sentence, its end included: (n),
// floats.
func (b Batch) Counts(c *nn.Context) graph.ID {
	return c.Relu(c.Shift(c.Cast(b.Lengths, c.DType), -1))
}

// mask is 1 where a prediction counts and 0 at padding, time-major (T·n).
func (b Batch) mask(c *nn.Context) graph.ID {
	t := b.steps()
	step := c.Iota(graph.T(c.DType, t, b.n), 0)
	return c.Reshape(c.Greater(c.Reshape(b.Counts(c), graph.D(1, b.n)), step), graph.D(t*b.n))
}

// sum is the sum of what counts of each, time-major (T·n), over each sentence: (n).
func (b Batch) sum(c *nn.Context, each graph.ID) graph.ID {
	return c.Sum(c.Reshape(c.Mul(each, b.mask(c)), graph.D(b.steps(), b.n)), 0)
}
