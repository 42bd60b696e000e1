package feature

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/quality"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Labelled are pictures with their classes, from 0.
type Labelled struct {
	Size   Size
	X      []float32
	Labels []int
}

// Training is how a classifier is trained.
type Training struct {
	Classes int
	Steps   int
	Batch   int
	Seed    uint64
	Flip    bool // mirrors pictures at random
	// Each is told after each step how many are done, and its loss; may be nil.
	Each func(done int, loss float64)
}

const (
	inputOneHot = "classes"
	outputLoss  = "loss"
	headName    = "head"

	classifierScope = "classifier"
)

// trunkOf are the features that a classifier tells classes by.
func trunkOf(s Size) Network {
	if s.Vector() {
		return layers{Scope: classifierScope, In: s.Len(), Widths: []int{64, 64}, Slope: 0.1}
	}
	return classifierTrunk(s)
}

// layers are fully connected ones, of points.
type layers struct {
	Scope  string
	In     int
	Widths []int
	Slope  float64 // of the leaky ReLU
}

// Features are (n, Dim).
func (l layers) Features(c *nn.Context, x graph.ID) graph.ID {
	x = c.Reshape(x, graph.D(c.Batch(x), l.In))
	c.Scope(l.Scope, func() {
		in := l.In
		for i, width := range l.Widths {
			x = c.LeakyRelu(nn.Linear{Name: fmt.Sprintf("layer%d", i+1), In: in, Out: width, Init: he(in)}.Apply(c, x), l.Slope)
			in = width
		}
	})
	return x
}

// Dim is the number of features.
func (l layers) Dim() int { return l.Widths[len(l.Widths)-1] }

// classifierTrunk is as a random network, twice as wide, of whose last layer's means
// the classes are told.
func classifierTrunk(s Size) convolutions {
	return convolutions{Scope: classifierScope, Size: s, Widths: widths(s, 32, 128), Slope: 0.1, Last: true}
}

// logits are (n, Classes).
func (n Net) logits(c *nn.Context, x graph.ID) graph.ID {
	features := n.trunk.Features(c, x)
	if t, ok := n.trunk.(Teller); ok {
		return t.Logits(c, features)
	}
	return nn.Linear{Name: headName, In: n.trunk.Dim(), Out: n.Classes}.Apply(c, features)
}

// probabilities are (n, Classes).
func (n Net) probabilities(c *nn.Context, x graph.ID) graph.ID {
	l := n.logits(c, x)
	return c.Exp(c.Sub(l, c.Reshape(c.LogSumExp(l, 1), graph.D(c.Batch(x), 1))))
}

// NewProbabilities is a classifier whose Of gives the probabilities of the classes.
func NewProbabilities(b exec.Backend, n Net, batch int) (*Extractor, error) {
	if n.Classes == 0 {
		return nil, fmt.Errorf("%s tells no classes apart", n.Name)
	}
	return n.compile(b, batch, n.Classes, n.probabilities)
}

// Train trains a classifier by Adam on cross-entropy, its rate 1e-3 and from three
// quarters on a tenth of that. Equal seeds give equal classifiers.
func Train(ctx context.Context, b exec.Backend, data Labelled, t Training) (n Net, err error) {
	if err := t.validate(data); err != nil {
		return n, err
	}
	n = Net{Name: "classifier", Size: data.Size, Classes: t.Classes, trunk: trunkOf(data.Size)}
	adam := optim.Adam{Name: "classifier", LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.1}
	g, variables, err := n.step(adam, t.Batch)
	if err != nil {
		return n, err
	}
	vars := b.NewVars()
	if err := nn.Initialise(vars, variables, t.Seed); err != nil {
		return n, err
	}
	p, err := b.Compile(g, exec.Options{Name: "classifier", Vars: vars})
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	feed := adam.Feeder(p)
	for step := range t.Steps {
		t.fill(p, data, step)
		feed(int64(step), step*4/3/t.Steps) // one epoch of the schedule is three quarters of the steps
		if err := exec.Run(ctx, p); err != nil {
			return n, err
		}
		if t.Each != nil {
			t.Each(step+1, p.Output(outputLoss).Scalar())
		}
	}
	n.values = map[string]*exec.Tensor{}
	for _, v := range variables {
		if v.Role == nn.Weight {
			if n.values[v.Name], err = vars.Get(v.Name); err != nil {
				return n, err
			}
		}
	}
	n.Digest = n.weightsDigest()
	return n, n.finite()
}

func (t Training) validate(data Labelled) error {
	n := len(data.Labels)
	switch {
	case t.Classes < 2:
		return fmt.Errorf("a classifier of %d classes, want at least 2", t.Classes)
	case n < t.Batch || n*data.Size.Len() != len(data.X):
		return fmt.Errorf("a classifier is trained on %d pictures in batches of %d", n, t.Batch)
	case slices.Min(data.Labels) < 0 || slices.Max(data.Labels) >= t.Classes:
		return fmt.Errorf("labels from %d to %d, want 0 to %d", slices.Min(data.Labels), slices.Max(data.Labels), t.Classes-1)
	case slices.Min(data.Labels) == slices.Max(data.Labels):
		return fmt.Errorf("all %d pictures that the classifier would be trained on are of one class", n)
	}
	if data.Size.Vector() {
		return nil
	}
	return data.Size.Validate()
}

// step is the graph of a step of training.
func (n Net) step(adam optim.Adam, batch int) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, 1)
	x := c.Input(inputPictures, graph.T(graph.F32, batch, n.Size.C, n.Size.H, n.Size.W))
	l := n.logits(c, x)
	right := c.Sum(c.Mul(l, c.Input(inputOneHot, graph.T(graph.F32, batch, n.Classes))), 1)
	loss := c.Mean(c.Sub(c.LogSumExp(l, 1), right))
	params := append(c.Params(classifierScope), c.Params(headName)...)
	adam.Step(c, params, c.Grad(loss, nn.IDs(params)...))
	c.Output(outputLoss, loss)
	g, err := c.Commit()
	return g, c.Variables(), err
}

// fill draws the batch of a step: pictures in the order of a permutation for each
// pass over the data.
func (t Training) fill(p exec.Program, data Labelled, step int) {
	x, y, size := p.Input(inputPictures).F32(), p.Input(inputOneHot).F32(), data.Size.Len()
	clear(y)
	passes := len(data.Labels) / t.Batch // batches of a pass
	order := philox.Name{Seed: t.Seed, Purpose: philox.DataOrder, Sub: philox.DataOrderClassifier, Step: uint32(step / passes)}.Perm(len(data.Labels))
	for i := range t.Batch {
		k := order[step%passes*t.Batch+i]
		one := x[i*size : (i+1)*size]
		copy(one, data.X[k*size:(k+1)*size])
		if t.Flip && (philox.Name{Seed: t.Seed, Purpose: philox.Augment, Sub: philox.AugmentClassifierFlip, Step: uint32(step), Sample: uint32(k)}).Uint32(0)&1 == 1 {
			for row := range slices.Chunk(one, data.Size.W) {
				slices.Reverse(row)
			}
		}
		y[i*t.Classes+data.Labels[k]] = 1
	}
}

// Accuracy is how many rows of probabilities are largest at their labels.
func Accuracy(probabilities quality.Matrix, labels []int) float64 {
	right := 0
	for i, l := range labels {
		row := probabilities.Row(i)
		if slices.Index(row, slices.Max(row)) == l {
			right++
		}
	}
	return float64(right) / float64(len(labels))
}

// weightsDigest names a trained network.
func (n Net) weightsDigest() string {
	h := sha256.New()
	for _, name := range n.names() {
		_, _ = fmt.Fprintf(h, "%s %v\n", name, n.values[name].Type) // a hash takes everything
		_, _ = h.Write(n.values[name].Bytes())
	}
	return digest("classifier", n.trunk, n.Classes, fmt.Sprintf("%x", h.Sum(nil)))
}
