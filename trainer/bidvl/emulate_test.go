package bidvl

import (
	"math"
	"strings"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/nets"
	"ebtrain/trainer/nn"
	"ebtrain/trainer/optim"
)

// A training step in plain loops and float64, written from algorithms.md §1.3
// and the definitions of the layers, for a network small enough for gradients
// by finite differences. Nothing here uses the graph.

// The sizes of the tiny network.
const (
	pixels = 4 // 1×2×2 images
	hidden = 3
	latent = 2
)

// tiny has every kind of layer of nets.Conv, and 2×2 pictures.
type tiny struct{}

func (tiny) Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID) {
	c.Scope("energy", func() {
		x := c.Reshape(v, graph.D(c.Shape(v).At(0), pixels))
		x = c.LeakyRelu(nn.Linear{Name: "l1", In: pixels, Out: hidden, Spectral: true}.Apply(c, x), 0.1)
		logit = nn.Linear{Name: "l2", In: hidden, Out: 1, Spectral: true}.Apply(c, x)
		energy = c.Softplus(logit)
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
	c := Defaults()
	c.Net = nets.Conv{Size: 2, Channels: 1, Latent: latent}
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

// energy is ⟨E(x)⟩ with the spectral vectors as they are.
func (s state) energy(x []float64) float64 {
	x = leaky(affine(x, s.spectral("l1"), s["energy.l1.bias"], pixels), 0.1)
	sum, logits := 0.0, affine(x, s.spectral("l2"), s["energy.l2.bias"], hidden)
	for _, l := range logits {
		sum += math.Log1p(math.Exp(l))
	}
	return sum / float64(len(logits))
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

const testSeed = 7

// emulation is one step.
type emulation struct {
	cfg    Config
	step   int
	v      []float64
	report map[string]float64
}

// emulate steps s and returns the report.
func (cfg Config) emulate(s state, step int, v []float64) map[string]float64 {
	e := emulation{cfg, step, v, map[string]float64{"stop": 0}}
	if cfg.Order == UpperFirst {
		e.upper(s)
		e.lower(s)
	} else {
		e.lower(s)
		e.upper(s)
	}
	return e.report
}

func (e emulation) n() int { return len(e.v) / pixels }

// upper: ⟨E(v)⟩ − ⟨E(v̂)⟩, each pass of E after a power iteration of its own.
func (e emulation) upper(s state) {
	fake := s.generate(draws(philox.Latent, 0, e.step, e.n()), true)
	s.iterate()
	first := s.clone()
	s.iterate()
	second := s.clone()
	passes := func(w state) (data, fakes float64) {
		return with(first, w).energy(e.v), with(second, w).energy(fake)
	}
	e.report["energy_data"], e.report["energy_fake"] = passes(s)
	e.report["upper"] = e.report["energy_data"] - e.report["energy_fake"]
	g := s.gradient("energy", func(w state) float64 {
		data, fakes := passes(w)
		return data - fakes
	})
	e.report["grad_energy"] = s.length(g)
	s.adam(e.cfg.Upper, e.step, g)
}

// with is vectors' spectral vectors with w's weights.
func with(vectors, w state) state {
	s := w.clone()
	for name, v := range vectors {
		if strings.HasSuffix(name, "_u") || strings.HasSuffix(name, "_v") {
			s[name] = v
		}
	}
	return s
}

// lower: ⟨E(v̂)⟩ + ‖μ(v̂) − ĥ‖²/d_h + r′(‖v − G(h)‖² + KL), Q constant in the
// second term.
func (e emulation) lower(s state) {
	n, sub := float64(e.n()), uint16(0)
	if e.cfg.FreshLatent {
		sub = 1
	}
	hat, eps := draws(philox.Latent, sub, e.step, e.n()), draws(philox.Posterior, 0, e.step, e.n())
	s.iterate()
	frozen := s.clone()
	terms := func(w state, advance bool) (gen, match, recon, kl float64) {
		fake := w.generate(hat, advance)
		gen = w.energy(fake)
		mean, logVar := w.infer(e.v, advance)
		h := make([]float64, len(mean))
		for i, m := range mean {
			h[i] = m + math.Exp(logVar[i]/2)*eps[i]
			kl += 0.5 * (m*m + math.Exp(logVar[i]) - 1 - logVar[i]) / n
		}
		for i, x := range w.generate(h, advance) {
			recon += (e.v[i] - x) * (e.v[i] - x) / n
		}
		fakeMean, _ := frozen.infer(fake, false)
		for i, m := range fakeMean {
			match += (m - hat[i]) * (m - hat[i]) / n
		}
		if advance {
			w.infer(fake, true) // Q is in training mode
		}
		return gen, match, recon, kl
	}
	loss := func(w state) float64 {
		gen, match, recon, kl := terms(w, false)
		return gen + e.cfg.latentWeight()*match + e.cfg.VAEWeight*(recon+kl)
	}
	e.report["lower"] = loss(s)
	gq, gg := s.gradient("inference", loss), s.gradient("generator", loss)
	e.report["grad_inference"], e.report["grad_generator"] = s.length(gq), s.length(gg)
	e.report["energy_gen"], e.report["latent"], e.report["recon"], e.report["kl"] = terms(s, true)
	s.adam(e.cfg.Lower, e.step, gq)
	s.adam(e.cfg.Lower, e.step, gg)
}
