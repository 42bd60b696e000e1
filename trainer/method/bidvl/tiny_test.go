package bidvl

import (
	"math"
	"strings"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// A network small enough for gradients by finite differences, twice: as the graph has it,
// and in plain loops and float64.

// The sizes of the tiny network.
const (
	pixels = 4 // 1×2×2 images
	hidden = 3
	latent = 2
)

// tiny has every kind of layer of nets.Conv, and 2×2 pictures.
type tiny struct {
	// signed energies are stretch times the logit, as those of the residual nets
	// have either sign, and not softplus of it.
	signed bool
}

// stretch takes energies of untrained networks beyond ±1, the corners of the
// hinge loss.
const stretch = 4

func (n tiny) Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID) {
	return n.energy(c, c.Reshape(v, graph.D(c.Batch(v), pixels)), pixels)
}

func (n tiny) JointEnergy(c *nn.Context, v, h graph.ID) (logit, energy graph.ID) {
	return n.energy(c, c.Concat(1, c.Reshape(v, graph.D(c.Batch(v), pixels)), h), pixels+latent)
}

func (n tiny) energy(c *nn.Context, x graph.ID, in int) (logit, energy graph.ID) {
	c.Scope("energy", func() {
		x = c.LeakyRelu(nn.Linear{Name: "l1", In: in, Out: hidden, Spectral: true}.Apply(c, x), 0.1)
		logit = nn.Linear{Name: "l2", In: hidden, Out: 1, Spectral: true}.Apply(c, x)
		energy = c.Softplus(logit)
		if n.signed {
			energy = c.Scale(logit, stretch)
		}
	})
	return logit, energy
}

func (tiny) Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID) {
	c.Scope("inference", func() {
		x := nn.Conv2d{Name: "conv", In: 1, Out: hidden, Kernel: 2, Stride: 1, NoBias: true}.Apply(c, v)
		x = c.LeakyRelu(nn.BatchNorm2d{Name: "bn", C: hidden}.Apply(c, x), 0.2)
		x = c.Reshape(x, graph.D(c.Shape(v).At(0), hidden))
		mean = nn.Linear{Name: "mean", In: hidden, Out: latent}.Apply(c, x)
		logVar = nn.Linear{Name: "logvar", In: hidden, Out: latent}.Apply(c, x)
	})
	return mean, logVar
}

func (tiny) Generator(c *nn.Context, h graph.ID) (v graph.ID) {
	c.Scope("generator", func() {
		x := c.Reshape(h, graph.D(c.Shape(h).At(0), latent, 1, 1))
		x = nn.ConvTranspose2d{Name: "conv", In: latent, Out: hidden, Kernel: 2, Stride: 1, NoBias: true}.Apply(c, x)
		x = c.Relu(nn.BatchNorm2d{Name: "bn", C: hidden}.Apply(c, x))
		v = c.Tanh(nn.Conv2d{Name: "out", In: hidden, Out: 1, Kernel: 1, Stride: 1}.Apply(c, x))
	})
	return v
}

// tinyConfig has settings under which every term matters: with ε = 1 Adam's
// steps depend on the size of the gradients.
func tinyConfig() Config {
	c := CIFAR10().Config
	c.Net = nets.Spec{Size: 2, Channels: 1, Latent: latent}
	c.VAEWeight = 0.3
	c.Upper = optim.Adam{Name: "upper", LR: 0.05, Beta2: 0.9, Eps: 1, Decay: 1}
	c.Lower = optim.Adam{Name: "lower", LR: 0.02, Beta2: 0.9, Eps: 1, Decay: 1, WeightDecay: 0.1}
	return c
}

// state holds all variables by name.
type state map[string][]float64

func (s state) clone() state {
	t := state{}
	for name, v := range s {
		t[name] = append([]float64(nil), v...)
	}
	return t
}

// affine is x·Wᵀ + b for rows x.
func affine(x, w, b []float64, in int) []float64 {
	out := len(w) / in
	y := make([]float64, len(x)/in*out)
	for i := range y {
		row, o := i/out, i%out
		y[i] = b[o]
		for k := range in {
			y[i] += x[row*in+k] * w[o*in+k]
		}
	}
	return y
}

func leaky(x []float64, slope float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = max(v, slope*v)
	}
	return y
}

// spectral is W/(uᵀWv) of an energy layer.
func (s state) spectral(layer string) []float64 {
	w, u, v := s["energy."+layer+".weight_orig"], s["energy."+layer+".weight_u"], s["energy."+layer+".weight_v"]
	sigma := 0.0
	for i := range w {
		sigma += u[i/len(v)] * w[i] * v[i%len(v)]
	}
	y := make([]float64, len(w))
	for i := range w {
		y[i] = w[i] / sigma
	}
	return y
}

// iterate makes one power iteration of every energy layer.
func (s state) iterate() {
	unit := func(x []float64) {
		norm := 0.0
		for _, v := range x {
			norm += v * v
		}
		for i := range x {
			x[i] /= math.Sqrt(norm)
		}
	}
	for _, layer := range []string{"l1", "l2"} {
		w, u, v := s["energy."+layer+".weight_orig"], s["energy."+layer+".weight_u"], s["energy."+layer+".weight_v"]
		clear(v)
		for i := range w {
			v[i%len(v)] += w[i] * u[i/len(v)]
		}
		unit(v)
		clear(u)
		for i := range w {
			u[i/len(v)] += w[i] * v[i%len(v)]
		}
		unit(u)
	}
}

// energies are E(x), or E(x, h) unless h is nil, of each sample with the
// spectral vectors as they are.
func (s state) energies(x, h []float64, signed bool) []float64 {
	in := pixels
	if h != nil {
		in += latent
		both := []float64{}
		for i := range len(x) / pixels {
			both = append(append(both, x[i*pixels:(i+1)*pixels]...), h[i*latent:(i+1)*latent]...)
		}
		x = both
	}
	x = leaky(affine(x, s.spectral("l1"), s["energy.l1.bias"], in), 0.1)
	y := affine(x, s.spectral("l2"), s["energy.l2.bias"], hidden)
	for i, l := range y {
		y[i] = math.Log1p(math.Exp(l))
		if signed {
			y[i] = stretch * l
		}
	}
	return y
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// norm is batch norm by the batch's statistics; channel says which channel an
// entry belongs to. If advance is set, the running statistics move.
func (s state) norm(net string, x []float64, channel func(i int) int, advance bool) []float64 {
	n := float64(len(x) / hidden)
	mean, variance := make([]float64, hidden), make([]float64, hidden)
	for i, v := range x {
		mean[channel(i)] += v / n
	}
	for i, v := range x {
		variance[channel(i)] += math.Pow(v-mean[channel(i)], 2) / n
	}
	if advance {
		for c := range hidden {
			rm, rv := s[net+".bn.running_mean"], s[net+".bn.running_var"]
			rm[c] = 0.9*rm[c] + 0.1*mean[c]
			rv[c] = 0.9*rv[c] + 0.1*variance[c]*n/(n-1)
		}
	}
	y := make([]float64, len(x))
	for i, v := range x {
		c := channel(i)
		y[i] = s[net+".bn.weight"][c]*(v-mean[c])/math.Sqrt(variance[c]+1e-5) + s[net+".bn.bias"][c]
	}
	return y
}

// infer is (μ, log σ²).
func (s state) infer(x []float64, advance bool) (mean, logVar []float64) {
	x = affine(x, s["inference.conv.weight"], make([]float64, hidden), pixels)
	x = leaky(s.norm("inference", x, func(i int) int { return i % hidden }, advance), 0.2)
	return affine(x, s["inference.mean.weight"], s["inference.mean.bias"], hidden),
		affine(x, s["inference.logvar.weight"], s["inference.logvar.bias"], hidden)
}

// generate is G(h).
func (s state) generate(h []float64, advance bool) []float64 {
	n := len(h) / latent
	x := make([]float64, n*hidden*pixels)
	for i := range x {
		row, c, p := i/(hidden*pixels), i/pixels%hidden, i%pixels
		for k := range latent {
			x[i] += h[row*latent+k] * s["generator.conv.weight"][(k*hidden+c)*pixels+p]
		}
	}
	x = leaky(s.norm("generator", x, func(i int) int { return i / pixels % hidden }, advance), 0)
	y := make([]float64, n*pixels)
	for i := range y {
		row, p := i/pixels, i%pixels
		sum := s["generator.out.bias"][0]
		for c := range hidden {
			sum += s["generator.out.weight"][c] * x[(row*hidden+c)*pixels+p]
		}
		y[i] = math.Tanh(sum)
	}
	return y
}

// gradient is that of loss at s with respect to the learned variables of a
// network, by central differences.
func (s state) gradient(net string, loss func(s state) float64) state {
	const h = 1e-7 // small: a ReLU seldom lies so near its corner
	g, s := state{}, s.clone()
	for name, v := range s {
		if !strings.HasPrefix(name, net+".") || !strings.HasSuffix(name, ".weight") && !strings.HasSuffix(name, ".weight_orig") && !strings.HasSuffix(name, ".bias") {
			continue
		}
		g[name] = make([]float64, len(v))
		for i, at := range v {
			v[i] = at + h
			up := loss(s)
			v[i] = at - h
			g[name][i] = (up - loss(s)) / (2 * h)
			v[i] = at
		}
	}
	return g
}

// adam steps s against g; β₁ is 0.
func (s state) adam(a optim.Adam, step int, g state) {
	for name, grad := range g {
		moment := "adam." + a.Name + "." + name + ".v"
		if s[moment] == nil {
			s[moment] = make([]float64, len(grad))
		}
		for i, d := range grad {
			d += a.WeightDecay * s[name][i]
			s[moment][i] = a.Beta2*s[moment][i] + (1-a.Beta2)*d*d
			s[name][i] -= a.LR * d / (math.Sqrt(s[moment][i]/(1-math.Pow(a.Beta2, float64(step+1)))) + a.Eps)
		}
	}
}

func (s state) length(g state) float64 {
	sum := 0.0
	for _, v := range g {
		for _, x := range v {
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// draws are n latents of the global batch.
func draws(p philox.Purpose, sub uint16, step, n int) []float64 {
	z := make([]float64, n*latent)
	for i := range n {
		philox.Name{Seed: testSeed, Purpose: p, Sub: sub, Step: uint32(step), Sample: uint32(i)}.Normal(z[i*latent : (i+1)*latent])
	}
	return z
}
