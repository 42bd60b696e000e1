package eblvm

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// The networks once more, as loops in float64 over one sample, from the tables
// of [ALGORITHMS.md §2.3]. Weights are read by name.

type picture struct {
	c, h, w int
	x       []float64
}

func (p picture) at(c, y, x int) float64 {
	if y < 0 || x < 0 || y >= p.h || x >= p.w {
		return 0
	}
	return p.x[(c*p.h+y)*p.w+x]
}

func (p picture) each(f func(float64) float64) picture {
	out := picture{p.c, p.h, p.w, make([]float64, len(p.x))}
	for i, v := range p.x {
		out.x[i] = f(v)
	}
	return out
}

func elu(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.Exp(x) - 1
}

func leaky(x float64) float64 { return math.Max(x, 0.2*x) }

// weights are variables by name; one that is missing fails the test.
type weights struct {
	t    *testing.T
	vars exec.Vars
}

func (w weights) get(name string) []float64 {
	w.t.Helper()
	v, err := w.vars.Get(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return ddptest.Numbers(v)
}

// conv is a k×k convolution with padding k/2.
func (w weights) conv(name string, p picture, out, k, stride int, bias bool) picture {
	kernel := w.get(name + ".weight")
	b := make([]float64, out)
	if bias {
		b = w.get(name + ".bias")
	}
	q := picture{out, (p.h + stride - 1) / stride, (p.w + stride - 1) / stride, nil}
	for o := range out {
		for y := range q.h {
			for x := range q.w {
				sum := b[o]
				for c := range p.c {
					for i := range k {
						for j := range k {
							sum += kernel[((o*p.c+c)*k+i)*k+j] * p.at(c, y*stride+i-k/2, x*stride+j-k/2)
						}
					}
				}
				q.x = append(q.x, sum)
			}
		}
	}
	return q
}

func (w weights) linear(name string, in []float64) []float64 {
	out := w.get(name + ".bias")
	m := w.get(name + ".weight")
	for o := range out {
		for i, v := range in {
			out[o] += m[o*len(in)+i] * v
		}
	}
	return out
}

func pooled(p picture) picture {
	q := picture{p.c, p.h / 2, p.w / 2, nil}
	for c := range q.c {
		for y := range q.h {
			for x := range q.w {
				sum := p.at(c, 2*y, 2*x) + p.at(c, 2*y, 2*x+1) + p.at(c, 2*y+1, 2*x) + p.at(c, 2*y+1, 2*x+1)
				q.x = append(q.x, sum/4)
			}
		}
	}
	return q
}

func (w weights) trunk(t Trunk, v picture) []float64 {
	x := w.conv("model.conv", v, t.Width, 3, 1, true)
	for level, times := range []int{2, 4, 8} {
		for j := range t.Blocks {
			name := fmt.Sprintf("model.level%d.block%d", level+1, j+1)
			y := w.conv(name+".conv1", x.each(elu), x.c, 3, 1, false)
			y = w.conv(name+".conv2", y.each(elu), times*t.Width, 3, 1, true)
			if j == 0 {
				x, y = pooled(x), pooled(y)
			}
			x = w.conv(name+".shortcut", x, times*t.Width, 1, 1, true)
			for i := range x.x {
				x.x[i] += y.x[i]
			}
		}
	}
	return x.x
}

func (w weights) energy(n Net, v picture, h []float64) (e float64) {
	both := w.linear("model.features", w.trunk(n.Trunk, v))
	for i := range both {
		both[i] += h[i]
	}
	for _, x := range w.linear("model.head", append(both, h...)) {
		e += elu(x) * elu(x)
	}
	return e
}

func (w weights) visibleEnergy(t Trunk, v picture) float64 {
	x := w.trunk(t, v)
	squares := make([]float64, len(x))
	for i := range x {
		squares[i] = x[i] * x[i]
	}
	return w.linear("model.head.a", x)[0]*w.linear("model.head.b", x)[0] + w.linear("model.head.c", squares)[0]
}

func (w weights) posterior(n Net, v picture) (mean, logStd []float64) {
	for i, times := range []int{1, 2, 4} {
		v = w.conv(fmt.Sprintf("posterior.conv%d", i+1), v, times*n.PosteriorWidth, 3, 2, true).each(leaky)
	}
	return w.linear("posterior.mean", v.x), w.linear("posterior.logstd", v.x)
}

// Energies and the posterior against the loops, on two samples.
func TestAgainstLoops(t *testing.T) {
	for _, n := range []Net{
		{Trunk: Trunk{Size: 8, Channels: 1, Width: 2, Blocks: 2}, Latent: 3, PosteriorWidth: 2},
		{Trunk: Trunk{Size: 16, Channels: 3, Width: 2, Blocks: 3}, Latent: 4, PosteriorWidth: 3},
	} {
		const batch = 2
		c := nn.NewContext(nn.Train, 1)
		c.DType = graph.F64
		v := c.Input("v", graph.T(graph.F64, batch, n.Channels, n.Size, n.Size))
		h := c.Input("h", graph.T(graph.F64, batch, n.Latent))
		c.Output("energy", n.Energy(c, v, h))
		q := n.Posterior(c, v)
		c.Output("mean", q.Mean)
		c.Output("logstd", q.LogStd)
		c.Output("sample", q.Sample(c, h))
		c.Output("logq", q.LogProb(c, h))
		pixels := n.Channels * n.Size * n.Size
		in := ddptest.Values{"v": ddptest.Noise(1, batch*pixels), "h": ddptest.Noise(2, batch*n.Latent)}
		w, out := evaluate(t, c, in)

		d := nn.NewContext(nn.Train, 1)
		d.DType = graph.F64
		d.Output("visible", n.VisibleEnergy(d, d.Input("v", c.Type(v))))
		u, visible := evaluate(t, d, in)

		var energy, mean, logStd, sample, logQ, alone []float64
		for i := range batch {
			p := picture{n.Channels, n.Size, n.Size, in["v"][i*pixels : (i+1)*pixels]}
			hidden := in["h"][i*n.Latent : (i+1)*n.Latent]
			energy = append(energy, w.energy(n, p, hidden))
			alone = append(alone, u.visibleEnergy(n.Trunk, p))
			m, s := w.posterior(n, p)
			mean, logStd = append(mean, m...), append(logStd, s...)
			log := 0.0
			for j := range m {
				sd := math.Exp(s[j])
				sample = append(sample, m[j]+sd*hidden[j])
				z := (hidden[j] - m[j]) / sd
				log += math.Log(math.Exp(-z*z/2) / (sd * math.Sqrt(2*math.Pi)))
			}
			logQ = append(logQ, log)
		}
		for name, want := range map[string][]float64{"energy": energy, "mean": mean, "logstd": logStd, "sample": sample, "logq": logQ} {
			if err := ddptest.Near(out[name], want, 1e-12); err != nil {
				t.Errorf("%+v: %s: %v", n, name, err)
			}
		}
		if err := ddptest.Near(visible["visible"], alone, 1e-12); err != nil {
			t.Errorf("%+v: the visible energy: %v", n, err)
		}
	}
}

// evaluate runs c once with initial weights.
func evaluate(t *testing.T, c *nn.Context, in ddptest.Values) (weights, ddptest.Values) {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return weights{t, vars}, out
}
