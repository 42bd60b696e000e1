package workload

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// ConvSM is a step of multi-scale denoising score matching of a convolutional
// energy, a small relative of the networks of [ALGORITHMS.md §2.3] without a
// latent: C3 to Width channels, three residual ELU blocks that each double the
// channels and halve the image, linear to Features, linear to (Size/8)²·4·Width,
// ELU, and the sum of squares is the energy.
//
//	loss = ½⟨‖S/σᵢ + εᵢ/σ₀²‖²⟩,  S = −∇E(vᵢ + σᵢεᵢ),  σ₀ = 0.1
//
// with σᵢ on a linear grid from 0.05 to 1.2 over the global batch.
type ConvSM struct {
	Size, Channels, Width, Features int
	LR                              float64
}

// SmallConv are 32×32 colour pictures at width 32.
func SmallConv() ConvSM { return ConvSM{Size: 32, Channels: 3, Width: 32, Features: 50, LR: 5e-5} }

const (
	gridLow, gridHigh = 0.05, 1.2
	sigma0            = 0.1
)

// Validate says what is wrong with the sizes.
func (m ConvSM) Validate() error {
	if m.Size < 8 || m.Size%8 != 0 || m.Channels < 1 || m.Width < 1 || m.Features < 1 || !(m.LR > 0) {
		return fmt.Errorf("conv-sm: want a size that is a multiple of 8 and positive channels, width, features and rate, got %+v", m)
	}
	return nil
}

// Report names the entry of the report.
func (m ConvSM) Report() []algo.Column { return algo.Columns([]string{"loss"}) }

// Feeder fills the schedule of Adam.
func (m ConvSM) Feeder(p exec.Program) func(step int64, epoch int) {
	in := p.Input(inputRates)
	return func(step int64, _ int) {
		optim.SetRow(in, 0, rates(m.LR, step+1))
	}
}

// Step builds one step for a rank that sees batch of world·batch samples.
func (m ConvSM) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("conv-sm", world, func(c *nn.Context) { m.build(c, batch) })
}

func (m ConvSM) build(c *nn.Context, batch int) {
	image := graph.T(c.DType, batch, m.Channels, m.Size, m.Size)
	eps := drawn(c)(0, graph.Normal, image)
	sigma := m.levels(c, batch)
	v := c.Add(c.Input(algo.InputImages, image), c.Mul(eps, sigma))
	score := c.Grad(c.Neg(m.energy(c, v)), v)[0]
	miss := c.Add(c.Div(score, sigma), c.Scale(eps, 1/(sigma0*sigma0)))
	loss := c.Scale(c.Sum(c.Square(miss)), 0.5/float64(batch))

	ps := c.Params("energy")
	s := optim.Declare(c, "energy", ps)
	grads := ddp.Sync(c.Builder, c.World, "energy", c.Grad(loss, s.P...))
	adam().Step(c, s, grads, optim.Rows(c, inputRates, 1)[0]).Keep(c, "energy", ps)
	report(c, loss)
}

// levels are σᵢ of this rank's samples, (batch, 1, 1, 1). The key says where in
// the global batch they begin.
func (m ConvSM) levels(c *nn.Context, batch int) graph.ID {
	key := c.Input(algo.InputKey, graph.KeyType)
	first := c.Reshape(c.Cast(c.Slice(key, 0, 2, 3, 1), c.DType), graph.D(1, 1, 1, 1))
	i := c.Add(c.Iota(graph.T(c.DType, batch, 1, 1, 1), 0), first)
	return c.Shift(c.Scale(i, (gridHigh-gridLow)/float64(max(1, c.World*batch-1))), gridLow)
}

// energy is Σ over the batch of E(v).
func (m ConvSM) energy(c *nn.Context, v graph.ID) (e graph.ID) {
	c.Scope("energy", func() {
		x := nn.Conv2d{Name: "conv", In: m.Channels, Out: m.Width, Kernel: 3, Stride: 1, Pad: 1}.Apply(c, v)
		for i, n := range []int{1, 2, 4} {
			c.Scope(fmt.Sprintf("block%d", i+1), func() { x = block(c, x, n*m.Width, 2*n*m.Width) })
		}
		flat := c.Shape(x).Len() / max(1, c.Batch(x))
		x = c.Reshape(x, graph.D(c.Batch(v), flat))
		x = nn.Linear{Name: "features", In: flat, Out: m.Features}.Apply(c, x)
		x = nn.Linear{Name: "head", In: m.Features, Out: flat / 2}.Apply(c, x)
		e = c.Sum(c.Square(c.Elu(x, 1)))
	})
	return e
}

// block is ELU → C3 without bias → ELU → C3 → halve, beside halve → C1.
func block(c *nn.Context, x graph.ID, in, out int) graph.ID {
	halve := func(x graph.ID) graph.ID { return c.AvgPool2D(x, graph.SquareWindow(2, 2, 0)) }
	y := nn.Conv2d{Name: "conv1", In: in, Out: in, Kernel: 3, Stride: 1, Pad: 1, NoBias: true}.Apply(c, c.Elu(x, 1))
	y = nn.Conv2d{Name: "conv2", In: in, Out: out, Kernel: 3, Stride: 1, Pad: 1}.Apply(c, c.Elu(y, 1))
	return c.Add(halve(y), nn.Conv2d{Name: "shortcut", In: in, Out: out, Kernel: 1, Stride: 1}.Apply(c, halve(x)))
}
