package sentence

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// Drop names what a step leaves out. The zero value leaves out nothing.
type Drop struct {
	Key graph.ID // graph.KeyType; 0 for no dropout
	// Sub distinguishes several uses in one step: each takes two, from this one on.
	Sub uint16
}

// NLL is −log p of each sentence of b, (n): the sum over its words and its end. z are
// latents (n, Latent), or 0 for a network without.
func (w Writer) NLL(c *nn.Context, b Batch, z graph.ID, d Drop) graph.ID {
	all := w.weights(c)
	embedded := w.drop(c, b, d, 0, c.Gather(all.words, b.columns(c, 0)), w.Embed)
	drive := w.drive(c, embedded, z)
	state := w.Begin(c, b.n, z)
	hidden := make([]graph.ID, b.steps())
	for t := range hidden {
		state = w.next(c, state, c.Slice(drive, 0, t*b.n, (t+1)*b.n, 1))
		hidden[t] = state.H
	}
	h := w.drop(c, b, d, 1, c.Concat(0, hidden...), w.Hidden)
	each := CrossEntropy(c, w.logits(c, h), b.columns(c, 1))
	counted := c.Reshape(c.Mul(each, b.mask(c)), graph.D(b.steps(), b.n))
	return c.Sum(counted, 0)
}

// CrossEntropy is −log softmax(logits)[target] of each row of logits (rows, V):
// LogSumExp less the target's logit, which a mask by Equal picks.
func CrossEntropy(c *nn.Context, logits, targets graph.ID) graph.ID {
	t := c.Type(logits)
	if c.Err() != nil {
		return 0
	}
	rows := t.Shape.At(0)
	target := c.Reshape(c.Cast(targets, t.DType), graph.D(rows, 1))
	picked := c.Mul(c.Equal(c.Iota(t, 1), target), logits)
	return c.Sub(c.LogSumExp(logits, 1), c.Sum(picked, 1))
}

// drop leaves out a share of x (T·n, width), and makes the rest as much larger. What
// is left out of a sentence depends on its place in the global batch alone.
func (w Writer) drop(c *nn.Context, b Batch, d Drop, use uint16, x graph.ID, width int) graph.ID {
	if d.Key == 0 || w.Dropout == 0 {
		return x
	}
	t := b.steps()
	draws := c.Draw(d.Key, graph.Uniform, philox.Dropout, d.Sub+use, graph.T(c.DType, b.n, t*width))
	kept := c.Scale(c.Greater(draws, c.Full(c.Type(draws), w.Dropout)), 1/(1-w.Dropout))
	major := c.Transpose(c.Reshape(kept, graph.D(b.n, t, width)), 1, 0, 2)
	return c.Mul(x, c.Reshape(major, graph.D(t*b.n, width)))
}
