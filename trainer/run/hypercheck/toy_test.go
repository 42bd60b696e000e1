package hypercheck

import (
	"math"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// toy is a bi-level model in closed form. Samples are pairs (x, y); θ is front.a
// and back.b, φ a number. With the mean over the batch ⟨·⟩:
//
//	lower  G = ⟨½(aφ − x)²⟩ + ½bφ²,  inner steps φ ← φ − rate·∂G/∂φ
//	upper  J = ⟨½(φx − y − ε)²⟩,  ε ~ N(0, 1) named by the sample
//
// The steps' rate is an input of its own, which Feeder sets.
type toy struct {
	steps int
	fault fault
	size  int // front.a is that many numbers, of which the sum counts; 0 means 1
}

// fault is something wrong with the toy.
type fault int

const (
	none      fault = iota
	noAdjoint       // whatever is asked, inner all-reduces have no adjoint
	local           // whatever is asked, inner steps are local
	onlyOwn         // gradients are not averaged over ranks
	direct          // the path through φᴺ is left out
	offBy           // the gradient of back is larger by 1e-5 of itself
	notANumber
	halfPrecision
	noGradient
	rankSeed // draws are named by the rank's own numbers
)

const rate = 0.3

func (t toy) Takes() algo.Inputs {
	return algo.Inputs{Shape: graph.D(1, 1, 2), Range: loader.Unit}
}

func (t toy) Report() []algo.Column { return nil }

// Step moves every variable by −0.1 of its gradient, and all by the step's number
// of thousandths, so that steps in another order or at another step end elsewhere.
func (t toy) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, world)
	o := algo.HyperOptions{World: world, Batch: batch, DType: graph.F32}
	upper, names, values := t.upper(c, o)
	step := c.Cast(c.Slice(c.Input(algo.InputKey, graph.KeyType), 0, 1, 2, 1), c.DType)
	for i, g := range c.Grad(upper, values...) {
		moved := c.Sub(values[i], c.Scale(g, 0.1))
		c.Set(names[i], c.Add(moved, c.BroadcastTo(c.Scale(step, 1e-3), c.Shape(g))))
	}
	c.Output(algo.OutputReport, c.Reshape(c.Input(algo.InputStop, graph.T(graph.F32)), graph.D(1)))
	g, err := c.Commit()
	return g, c.Variables(), err
}

func (t toy) Feeder(p exec.Program) func(int64, int) {
	in := p.Input("rate")
	return func(step int64, epoch int) {
		if in != nil {
			in.SetAt(0, rate*float64(step)/float64(epoch))
		}
	}
}

// inputs of the check under which Feeder sets rate itself.
const (
	toyStep  = 7
	toyEpoch = 7
)

func (t toy) length() int { return max(1, t.size) }

func (t toy) Hypergradient(o algo.HyperOptions) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, o.World)
	if c.DType = o.DType; t.fault == halfPrecision {
		c.DType = graph.F32
	}
	upper, names, values := t.upper(c, o)
	grads := c.Grad(upper, values[:2]...)
	if t.fault == offBy {
		grads[1] = c.Scale(grads[1], 1+1e-5)
	}
	if o.World > 1 && t.fault != onlyOwn {
		grads = c.AllReduce(collective.Mean, "gradient", grads...)
	}
	if o.World > 1 {
		upper = c.AllReduce(collective.Mean, "upper", upper)[0]
	}
	if t.fault == notANumber {
		grads[0] = c.Log(c.Neg(c.Square(grads[0])))
	}
	c.Output(algo.OutputUpper, upper)
	for i, g := range grads {
		if t.fault != noGradient {
			c.Output(algo.GradientOf(names[i]), g)
		}
	}
	g, err := c.Commit()
	return g, c.Variables(), err
}

// upper is a rank's J, and all variables: θ, then φ⁰.
func (t toy) upper(c *nn.Context, o algo.HyperOptions) (j graph.ID, names []string, values []graph.ID) {
	var a, b, start graph.ID
	c.Scope("front", func() { a = c.Weight("a", graph.D(t.length()), nn.Uniform(1)) })
	c.Scope("back", func() { b = c.Weight("b", graph.D(1), nn.Ones) })
	c.Scope("posterior", func() { start = c.Weight("phi", graph.D(1), nn.Uniform(1)) })
	phi := t.unroll(c, o, c.Reshape(c.Sum(a), graph.D(1)), b, start)
	if t.fault == direct {
		phi = c.StopGrad(phi)
	}
	j = c.Mean(c.Scale(c.Square(c.Sub(c.Mul(phi, column(c, o, 0)), t.target(c, o))), 0.5))
	if t.fault == direct { // or the gradient is zero
		j = c.Add(j, c.Scale(c.Sum(c.Square(c.Concat(0, a, b))), 0.5))
	}
	return j, []string{"front.a", "back.b", "posterior.phi"}, []graph.ID{a, b, start}
}

// column is the x (0) or the y (1) of a rank's samples, (batch).
func column(c *nn.Context, o algo.HyperOptions, i int) graph.ID {
	images := c.Cast(c.Input(algo.InputImages, graph.T(graph.F32, o.Batch, 1, 1, 2)), c.DType)
	return c.Reshape(c.Slice(images, 3, i, i+1, 1), graph.D(o.Batch))
}

func (t toy) target(c *nn.Context, o algo.HyperOptions) graph.ID {
	key := c.Input(algo.InputKey, graph.KeyType)
	if t.fault == rankSeed {
		key = c.Mul(key, c.Sub(c.Ones(graph.KeyType), c.Equal(c.Iota(graph.KeyType, 0), c.Full(graph.KeyType, 2))))
	}
	noise := c.Draw(key, graph.Normal, philox.Testing, 0, graph.T(c.DType, o.Batch, 1))
	return c.Add(column(c, o, 1), c.Reshape(noise, graph.D(o.Batch)))
}

// unroll is φᴺ.
func (t toy) unroll(c *nn.Context, o algo.HyperOptions, a, b, phi graph.ID) graph.ID {
	inner := o.Inner
	switch t.fault {
	case noAdjoint:
		inner = algo.NoAdjoint
	case local:
		inner = algo.Local
	}
	step := c.Cast(c.Input("rate", graph.T(graph.F64, 1)), c.DType)
	x := column(c, o, 0)
	for range t.steps {
		fit := c.Reshape(c.Mean(c.Sub(c.Mul(a, phi), x)), graph.D(1))
		g := c.Add(c.Mul(a, fit), c.Mul(b, phi))
		if o.World > 1 && inner != algo.Local {
			all := c.AllReduce(collective.Mean, "inner", g)[0]
			if inner == algo.NoAdjoint {
				all = c.Add(g, c.StopGrad(c.Sub(all, g)))
			}
			g = all
		}
		phi = c.Sub(phi, c.Mul(step, g))
	}
	return phi
}

// closed is J and its gradient in a (each of its numbers) and b by formula: with
// q = 1 − rate(a² + b) and S = 1 + q + … + qᴺ⁻¹,
//
//	φᴺ = qᴺφ⁰ + rate·a·⟨x⟩·S
func (t toy) closed(c *Check, a, b, start float64) (upper, da, db float64) {
	var mx, mxx, mxt, mtt float64
	for i := range c.Batch {
		eps := make([]float64, 1)
		philox.Name{Seed: c.Seed, Step: uint32(c.Step), Sample: uint32(c.First) + uint32(i), Purpose: philox.Testing}.Normal(eps)
		x, target := float64(c.Images[2*i]), float64(c.Images[2*i+1])+eps[0]
		n := float64(c.Batch)
		mx, mxx, mxt, mtt = mx+x/n, mxx+x*x/n, mxt+x*target/n, mtt+target*target/n
	}
	q, n := 1-rate*(a*a+b), float64(t.steps)
	var s, ds float64 // S and dS/dq
	for k := range t.steps {
		s += math.Pow(q, float64(k))
		if k > 0 {
			ds += float64(k) * math.Pow(q, float64(k-1))
		}
	}
	phi := math.Pow(q, n)*start + rate*a*mx*s
	dq := rate * a * mx * ds // ∂φ/∂q
	if t.steps > 0 {
		dq += n * math.Pow(q, n-1) * start
	}
	slope := phi*mxx - mxt // ∂J/∂φ
	return phi*phi*mxx/2 - phi*mxt + mtt/2, slope * (rate*mx*s - 2*rate*a*dq), slope * -rate * dq
}
