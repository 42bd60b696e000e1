package sentence

import (
	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// never is the logit of a token that no sentence has behind its begin.
const never = -1e30

// most is the largest number below 1 in float32. Uniform draws are rounded there, and
// the last to 1, whose Gumbel noise would be infinite: a token that is barred would come.
const most = 1 - 0x1p-24

// Sample is n sentences of a network whose weights' names begin with network. latent
// is a variable of their latents, (n, Latent), where it has any, which the plan reads
// and does not list. Each word is drawn from its distribution after those before it. The
// result is tokens (n, 1, 1, length), as floats, padded behind the end; a sentence
// that has not ended before its last place ends there.
func (w Writer) Sample(network string, n, length int, latent ...nn.Variable) (chain.Plan, error) {
	f := func(name string, dims ...int) nn.Variable { return chain.Var(name, graph.T(graph.F32, dims...)) }
	at, word, h, cell, text := f("place", 1), f("word", n), f("hidden", n, w.Hidden), f("cell", n, w.Hidden), f("text", n, 1, 1, length)
	vars := []nn.Variable{text, at, word, h, cell}
	c := nn.NewContext(nn.Eval, 1)
	of := func(v nn.Variable) graph.ID { return c.Var(v.Name, v.Type) }
	place, before := of(at), of(word)
	key := c.Input(chain.InputKey, graph.KeyType)

	first := c.Equal(place, c.Zeros(at.Type))
	tokens := c.Cast(c.Add(before, c.Scale(first, data.Begin)), graph.I32)
	var s State
	var logits graph.ID
	var z graph.ID
	if w.Latent > 0 {
		z = of(latent[0])
	}
	c.Scope(network, func() {
		begin := w.Begin(c, n, z)
		s, logits = w.Next(c, State{either(c, first, begin.H, of(h)), of(cell)}, tokens, z)
	})

	next := draw(c, key, logits)
	last := c.Equal(place, c.Full(at.Type, float64(length-2)))
	next = either(c, last, c.Full(word.Type, data.End), next)
	// Behind the end, and there alone, the word before is End or Padding.
	begun := c.Greater(place, c.Zeros(at.Type))
	over := c.Mul(c.Add(c.Equal(before, c.Full(word.Type, data.End)), c.Equal(before, c.Full(word.Type, data.Padding))), begun)
	next = either(c, over, c.Full(word.Type, data.Padding), next)

	row := c.Iota(text.Type, 3)
	here := c.Equal(row, c.Shift(place, 1))
	begin := c.Mul(c.Equal(row, c.Zeros(text.Type)), c.Scale(first, data.Begin))
	written := c.Add(c.Add(of(text), begin), c.Mul(here, c.Reshape(next, graph.D(n, 1, 1, 1))))
	c.Assign(of(text), written)
	c.Assign(of(at), c.Shift(place, 1))
	c.Assign(of(word), next)
	c.Assign(of(h), s.H)
	c.Assign(of(cell), s.C)
	g, err := c.Build()
	return chain.Plan{Vars: vars, Stages: []chain.Stage{{Name: "write", Graph: g, Times: length - 1}}, Out: text.Name}, err
}

// either is x where cond is 1, else y.
func either(c *nn.Context, cond, x, y graph.ID) graph.ID {
	return c.Add(c.Mul(cond, x), c.Mul(c.Shift(c.Neg(cond), 1), y))
}

// draw is a token of each row of logits (n, V) with the probabilities of their
// softmax, (n), as floats: the largest after Gumbel noise is added.
func draw(c *nn.Context, key, logits graph.ID) graph.ID {
	t := c.Type(logits)
	number := c.Iota(t, 1)
	barred := c.Add(c.Equal(number, c.Full(t, data.Padding)), c.Equal(number, c.Full(t, data.Begin)))
	u := c.Min(c.Draw(key, graph.Uniform, philox.Chain, 0, t), c.Full(t, most))
	noisy := c.Sub(c.Add(logits, c.Scale(barred, never)), c.Log(c.Neg(c.Log(u))))
	best := c.Equal(noisy, c.MaxKeep(noisy, 1))
	last := c.MaxKeep(c.Mul(best, number), 1) // of several, which are rare
	return c.Reshape(last, graph.D(t.Shape.At(0)))
}
