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
	return b.sum(c, CrossEntropy(c, w.predicted(c, b, z, d), b.columns(c, 1)))
}

// Told is NLL with nothing left out, and how many of its words, its end included, the
// network tells from what stands before them, (n): each is likelier than any other.
func (w Writer) Told(c *nn.Context, b Batch, z graph.ID) (nll, told graph.ID) {
	logits, targets := w.predicted(c, b, z, Drop{}), b.columns(c, 1)
	return b.sum(c, CrossEntropy(c, logits, targets)), b.sum(c, Likeliest(c, logits, targets))
}

// predicted are the logits of all words that follow, time-major (T·n, Words).
func (w Writer) predicted(c *nn.Context, b Batch, z graph.ID, d Drop) graph.ID {
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
	return w.logits(c, h)
}

// CrossEntropy is −log softmax(logits)[target] of each row of logits (rows, V):
// LogSumExp less the target's logit.
func CrossEntropy(c *nn.Context, logits, targets graph.ID) graph.ID {
	picked := targetOf(c, logits, targets)
	if c.Err() != nil {
		return 0
	}
	return c.Sub(c.LogSumExp(logits, 1), picked)
}

// Likeliest is 1 where the target's logit is above all others of its row of logits
// (rows, V), and 0 elsewhere.
func Likeliest(c *nn.Context, logits, targets graph.ID) graph.ID {
	picked := targetOf(c, logits, targets)
	if c.Err() != nil {
		return 0
	}
	shape := c.Shape(logits)
	below := c.Sum(c.Greater(c.Reshape(picked, graph.D(shape.At(0), 1)), logits), 1)
	return c.Equal(below, c.Full(c.Type(below), float64(shape.At(1)-1)))
}

// targetOf is each row's logit of its target, (rows), which a mask by Equal picks.
func targetOf(c *nn.Context, logits, targets graph.ID) graph.ID {
	t := c.Type(logits)
	if c.Err() != nil {
		return 0
	}
	target := c.Reshape(c.Cast(targets, t.DType), graph.D(t.Shape.At(0), 1))
	return c.Sum(c.Mul(c.Equal(c.Iota(t, 1), target), logits), 1)
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
