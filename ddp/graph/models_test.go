package graph_test

import (
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// model is a scalar loss of a whole network, proved in three directions at
// 1e-6 of Σ|terms|.
type model struct {
	name string
	args []exectest.Arg
	loss func(b *graph.Builder, x []graph.ID) graph.ID
}

func image(dims ...int) exectest.Arg {
	return exectest.Arg{Shape: graph.D(dims...), Fill: exectest.Between(-1, 1)}
}

func weight(dims ...int) exectest.Arg {
	return exectest.Arg{Shape: graph.D(dims...), Fill: exectest.Between(-0.4, 0.4)}
}

// fixed is a, not to be differentiated.
func fixed(a exectest.Arg) exectest.Arg {
	a.Fixed = true
	return a
}

// convEnergy is E(v, h) = Σ_n ½‖elu(conv(elu(conv v)) + conv h)‖² + ½‖h‖².
func convEnergy(b *graph.Builder, v, h graph.ID, w []graph.ID) graph.ID {
	a := b.Elu(b.Conv2D(v, w[0], graph.NewConv(3, 1, 1)), 1)
	a = b.Conv2D(a, w[1], graph.NewConv(4, 2, 1))
	a = b.Elu(b.Add(a, b.Conv2D(h, w[2], graph.NewConv(3, 1, 1))), 1)
	return b.Scale(b.Add(b.Sum(b.Square(a)), b.Sum(b.Square(h))), 0.5)
}

var energyArgs = []exectest.Arg{fixed(image(2, 2, 6, 6)), fixed(image(2, 3, 3, 3)), weight(4, 2, 3, 3), weight(3, 4, 4, 4), weight(3, 3, 3, 3)}

// scoreMatching is ½·mean_n‖∂E/∂v + ε/σ²‖².
func scoreMatching(b *graph.Builder, x []graph.ID) graph.ID {
	noise := b.Draw(b.Iota(graph.T(graph.I64, 3), 0), graph.Normal, 9, 1, b.Type(x[0]))
	v := b.Add(x[0], b.Scale(noise, 0.3))
	score := b.Grad(convEnergy(b, v, x[1], x[2:]), v)[0]
	return b.Scale(b.Sum(b.Square(b.Add(score, b.Scale(noise, 0.3/0.09)))), 0.25)
}

// descent is three steps of gradient descent on h, then the energy again: a
// bi-level loss whose lower level is unrolled.
func descent(b *graph.Builder, x []graph.ID) graph.ID {
	h := x[1]
	for range 3 {
		h = b.Sub(h, b.Scale(b.Grad(convEnergy(b, x[0], h, x[2:]), h)[0], 0.1))
	}
	return b.Add(b.Sum(b.Sin(h)), convEnergy(b, x[0], h, x[2:]))
}

// adam is three steps of Adam on h, differentiated through its moments.
func adam(b *graph.Builder, x []graph.ID) graph.ID {
	const beta1, beta2, rate = 0.9, 0.99, 0.05
	h := x[1]
	m, v := b.Zeros(b.Type(h)), b.Zeros(b.Type(h))
	c1, c2 := 1.0, 1.0
	for range 3 {
		c1, c2 = c1*beta1, c2*beta2
		g := b.Grad(convEnergy(b, x[0], h, x[2:]), h)[0]
		m = b.Add(b.Scale(m, beta1), b.Scale(g, 1-beta1))
		v = b.Add(b.Scale(v, beta2), b.Scale(b.Square(g), 1-beta2))
		step := b.Div(b.Scale(m, 1/(1-c1)), b.Shift(b.Sqrt(b.Scale(v, 1/(1-c2))), 1e-3))
		h = b.Sub(h, b.Scale(step, rate))
	}
	return b.Add(b.Sum(b.Sin(h)), convEnergy(b, x[0], h, x[2:]))
}

// batchNorm is the mean of a softplus after batch normalisation of a
// convolution, which the gradient passes through.
func batchNorm(b *graph.Builder, x []graph.ID) graph.ID {
	h := b.Conv2D(x[0], x[2], graph.NewConv(3, 1, 1))
	c := b.Sub(h, b.MeanKeep(h, 0, 2, 3))
	y := b.Mul(c, b.Pow(b.Shift(b.MeanKeep(b.Square(c), 0, 2, 3), 1e-3), -0.5))
	return b.Mean(b.Mul(b.Softplus(y), b.Sin(y)))
}

var models = []model{
	{"energy", energyArgs, func(b *graph.Builder, x []graph.ID) graph.ID { return convEnergy(b, x[0], x[1], x[2:]) }},
	{"score matching", energyArgs, scoreMatching},
	{"unrolled descent", energyArgs, descent},
	{"unrolled adam", energyArgs, adam},
	{"batch norm", energyArgs, batchNorm},
}

// TestModels proves gradients of whole losses with respect to weights, and the
// derivatives of those gradients. The step is small, because the second
// derivative of ELU jumps at 0: a larger one would carry some activation over
// the edge.
func TestModels(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(3) {
				p := &proof{args: m.args, x: map[string]*exec.Tensor{}, orders: 2, h: 1e-6, rel: 1e-6, abs: 1e-9, seed: seed}
				for i, a := range m.args {
					p.x[[]string{"a0", "a1", "a2", "a3", "a4"}[i]] = a.Tensor(graph.F64, m.name, i)
				}
				p.scalar = func(b *graph.Builder, x []graph.ID) (l, magnitude graph.ID) {
					l = m.loss(b, x)
					return l, b.Abs(b.StopGrad(l))
				}
				p.check(t)
			}
		})
	}
}
