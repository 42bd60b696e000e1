package grbm

import (
	"cmp"

	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Machine is a GRBM of pictures, each the vector of its C·H·W values: what
// programs can ask of a trained one, whatever method has trained it. Its graphs
// read the variables that Size.Declare names, as F32. A method's algo.Model
// embeds it.
type Machine struct {
	Size
	Picture graph.Shape // (C, H, W); its length is Visible

	dtype graph.DType // of the variables, where they are not F32
}

// Takes are pictures in [0, 1].
func (m Machine) Takes() algo.Inputs { return algo.Inputs{Shape: m.Picture, Range: loader.Unit} }

// points says that they are no pictures but points, 1×1×d.
func (m Machine) points() bool { return m.Picture.At(0) == 1 && m.Picture.At(1) == 1 }

// Flat is pictures (n, C, H, W) as vectors (n, Visible).
func (m Machine) Flat(c *nn.Context, images graph.ID) graph.ID {
	return c.Reshape(images, graph.D(c.Batch(images), m.Visible))
}

// pictures is vectors (n, Visible) as pictures (n, C, H, W).
func (m Machine) pictures(c *nn.Context, v graph.ID) graph.ID {
	return c.Reshape(v, m.batch(c.Batch(v)))
}

// batch is the shape of n pictures.
func (m Machine) batch(n int) graph.Shape {
	return graph.D(append([]int{n}, m.Picture.Slice()...)...)
}

// floats is a type of the variables' kind of numbers.
func (m Machine) floats(dims ...int) graph.Type {
	return graph.T(cmp.Or(m.dtype, graph.F32), dims...)
}

// begin starts a graph that reads the model.
func (m Machine) begin() (*nn.Context, Params) {
	c := nn.NewContext(nn.Eval, 1)
	c.DType = m.floats().DType
	return c, Of(nn.IDs(m.Declare(c)))
}

// judged starts a graph that reads the model and n pictures, as vectors.
func (m Machine) judged(n int) (*nn.Context, Params, graph.ID) {
	c, p := m.begin()
	images := c.Input(algo.InputImages, graph.Type{DType: c.DType, Shape: m.batch(n)})
	return c, p, m.Flat(c, images)
}

// Energies are free energies F(v), as logit and as energy.
func (m Machine) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	c, p, v := m.judged(n)
	free := c.Reshape(p.FreeEnergy(c, v), graph.D(n, 1))
	c.Output(algo.OutputLogit, free)
	c.Output(algo.OutputEnergy, free)
	return c.Commit()
}

// Score is the exact marginal score.
func (m Machine) Score(n int) (*graph.Graph, error) {
	c, p, v := m.judged(n)
	c.Output(algo.OutputScore, m.pictures(c, p.Score(c, v)))
	return c.Commit()
}

// FisherLoss has the trace in closed form.
func (m Machine) FisherLoss(n int) (*graph.Graph, error) {
	c, p, v := m.judged(n)
	c.Output(algo.OutputFisher, p.FisherLoss(c, v))
	return c.Commit()
}
