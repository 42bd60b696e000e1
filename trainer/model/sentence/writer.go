package sentence

import (
	"errors"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Initial bounds the initial values of all weights [ALGORITHMS.md §4].
const Initial = 0.1

// Writer is the network.
type Writer struct {
	Words  int // of the vocabulary
	Embed  int // numbers of a word
	Hidden int // units
	Latent int // numbers of the latent, joined to every word; 0 for none
	// Dropout is the share of embeddings' and of hidden units' values that a step
	// leaves out.
	Dropout float64
}

// Validate says what is wrong with the sizes.
func (w Writer) Validate() error {
	switch {
	case w.Words < 1 || w.Embed < 1 || w.Hidden < 1 || w.Latent < 0:
		return fmt.Errorf("want words, numbers of each and units, got %d, %d and %d", w.Words, w.Embed, w.Hidden)
	case !(w.Dropout >= 0 && w.Dropout < 1):
		return errors.New("want dropout of at least 0 and below 1")
	}
	return nil
}

// weights are the network's, as PyTorch's nn.Embedding, nn.LSTM (gates in, forget,
// cell, out; one bias in the place of two that are always added) and nn.Linear.
type weights struct {
	words        graph.ID // (Words, Embed)
	in           graph.ID // (4·Hidden, Embed + Latent)
	state        graph.ID // (4·Hidden, Hidden)
	bias         graph.ID // (4·Hidden)
	out, outBias graph.ID // (Words, Hidden), (Words)
	first        graph.ID // (Hidden, Latent): h₀ of the latent; 0 without one
	firstBias    graph.ID // (Hidden)
}

// weights are the newest values, declared on first use.
func (w Writer) weights(c *nn.Context) (all weights) {
	uniform := nn.Uniform(Initial)
	of := func(name string, dims ...int) graph.ID { return c.Weight(name, graph.D(dims...), uniform) }
	c.Scope("embedding", func() { all.words = of("weight", w.Words, w.Embed) })
	c.Scope("lstm", func() {
		all.in = of("weight_ih", 4*w.Hidden, w.Embed+w.Latent)
		all.state = of("weight_hh", 4*w.Hidden, w.Hidden)
		all.bias = of("bias", 4*w.Hidden)
	})
	c.Scope("out", func() { all.out, all.outBias = of("weight", w.Words, w.Hidden), of("bias", w.Words) })
	if w.Latent > 0 {
		c.Scope("first", func() { all.first, all.firstBias = of("weight", w.Hidden, w.Latent), of("bias", w.Hidden) })
	}
	return all
}

// Declare declares the weights in the current scope.
func (w Writer) Declare(c *nn.Context) { w.weights(c) }

// State is what the network remembers of n sentences.
type State struct{ H, C graph.ID } // (n, Hidden)

// Begin is the state before the first word: h₀ = linear(z), or 0 without a latent,
// and c₀ = 0.
func (w Writer) Begin(c *nn.Context, n int, z graph.ID) State {
	zeros := c.Zeros(graph.T(c.DType, n, w.Hidden))
	if w.Latent == 0 {
		return State{zeros, zeros}
	}
	all := w.weights(c)
	return State{c.Add(c.MatMul(z, all.first, false, true), all.firstBias), zeros}
}

// drive is what words and the latent add to the gates, (rows, 4·Hidden), where rows
// are those of embedded (rows, Embed): whole steps of the n latents.
func (w Writer) drive(c *nn.Context, embedded, z graph.ID) graph.ID {
	all := w.weights(c)
	if w.Latent == 0 {
		return c.Add(c.MatMul(embedded, all.in, false, true), all.bias)
	}
	words := c.MatMul(embedded, c.Slice(all.in, 1, 0, w.Embed, 1), false, true)
	same := c.Add(c.MatMul(z, c.Slice(all.in, 1, w.Embed, w.Embed+w.Latent, 1), false, true), all.bias)
	n := c.Batch(z)
	if c.Err() != nil {
		return 0
	}
	steps := c.Shape(words).At(0) / n
	sum := c.Add(c.Reshape(words, graph.D(steps, n, 4*w.Hidden)), same)
	return c.Reshape(sum, graph.D(steps*n, 4*w.Hidden))
}

// next is the state after one word, of which drive has the part of the gates.
func (w Writer) next(c *nn.Context, s State, drive graph.ID) State {
	gates := c.Add(drive, c.MatMul(s.H, w.weights(c).state, false, true))
	gate := func(k int) graph.ID { return c.Slice(gates, 1, k*w.Hidden, (k+1)*w.Hidden, 1) }
	in, forget, cell, out := c.Sigmoid(gate(0)), c.Sigmoid(gate(1)), c.Tanh(gate(2)), c.Sigmoid(gate(3))
	kept := c.Add(c.Mul(forget, s.C), c.Mul(in, cell))
	return State{H: c.Mul(out, c.Tanh(kept)), C: kept}
}

// Next is the state after one word of each of n sentences, tokens (n), and the logits
// of the word that follows, (n, Words). Nothing is left out.
func (w Writer) Next(c *nn.Context, s State, tokens, z graph.ID) (State, graph.ID) {
	s = w.next(c, s, w.drive(c, c.Gather(w.weights(c).words, tokens), z))
	return s, w.logits(c, s.H)
}

// logits are those of hidden states (rows, Hidden).
func (w Writer) logits(c *nn.Context, hidden graph.ID) graph.ID {
	all := w.weights(c)
	return c.Add(c.MatMul(hidden, all.out, false, true), all.outBias)
}
