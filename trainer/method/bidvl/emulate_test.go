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
	c := Defaults()
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

const testSeed = 7

// emulation is one step.
type emulation struct {
	cfg    Config
	step   int
	v      []float64
	report map[string]float64
	taken  map[string]int // steps so far since the beginning of the run, by optimiser
}

// emulate steps s and returns the report.
func (cfg Config) emulate(s state, step int, v []float64) map[string]float64 {
	each := cfg.LowerSteps
	if cfg.LatentTerm == NotOffset {
		each++
	}
	e := emulation{cfg, step, v, map[string]float64{"stop": 0},
		map[string]int{"upper": step, "lower": step * each, "generator": step * cfg.LowerSteps}}
	if cfg.Order == UpperFirst {
		e.upper(s)
	}
	for nth := range cfg.LowerSteps {
		e.lower(s, nth)
	}
	if cfg.Order == LowerFirst {
		e.upper(s)
	}
	return e.report
}

func (e emulation) n() int { return len(e.v) / pixels }

func (e emulation) draws(p philox.Purpose, sub int) []float64 {
	return draws(p, uint16(sub), e.step, e.n())
}

func (e emulation) adam(s state, a optim.Adam, g state) {
	s.adam(a, e.taken[a.Name], g)
	e.taken[a.Name]++
}

// energies are those of one pass of E, with w's weights and vectors' spectral
// vectors.
func (e emulation) energies(vectors, w state, x, h []float64) []float64 {
	return with(vectors, w).energies(x, h, e.cfg.UpperLoss == Hinge)
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

// pass makes a power iteration and returns the vectors as they are then.
func (s state) pass() state {
	s.iterate()
	return s.clone()
}

// posterior is h = μ + σ⊙ε.
func posterior(mean, logVar, eps []float64) []float64 {
	h := make([]float64, len(mean))
	for i, m := range mean {
		h[i] = m + math.Exp(logVar[i]/2)*eps[i]
	}
	return h
}

// prior are KL(N(μ, σ²) ‖ N(0, I)) of each sample.
func prior(mean, logVar []float64) []float64 {
	kl := make([]float64, len(mean)/latent)
	for i, m := range mean {
		kl[i/latent] += 0.5 * (m*m + math.Exp(logVar[i]) - 1 - logVar[i])
	}
	return kl
}

// distances are ‖x − y‖² of each sample of d numbers.
func distances(x, y []float64, d int) []float64 {
	sum := make([]float64, len(x)/d)
	for i := range x {
		sum[i/d] += (x[i] - y[i]) * (x[i] - y[i])
	}
	return sum
}

// upper: ⟨E(v)⟩ − ⟨E(v̂)⟩ or the hinge loss, each pass of E after a power
// iteration of its own. Not offset: then Q against the prior's divergence.
func (e emulation) upper(s state) {
	hat := e.draws(philox.Latent, 0)
	fake := s.generate(hat, true)
	var hData, hFake []float64
	if e.cfg.Undecoupled {
		mean, logVar := s.infer(e.v, true)
		hData, hFake = posterior(mean, logVar, e.draws(philox.Posterior, 0)), hat
	}
	first, second := s.pass(), s.pass()
	loss := func(w state) float64 {
		data, fakes := e.energies(first, w, e.v, hData), e.energies(second, w, fake, hFake)
		e.report["energy_data"], e.report["energy_fake"] = mean(data), mean(fakes)
		if e.cfg.UpperLoss == Difference {
			return mean(data) - mean(fakes)
		}
		sum := 0.0
		for i := range data {
			sum += max(0, 1+data[i]) + max(0, 1-fakes[i])
		}
		return sum / float64(len(data))
	}
	g := s.gradient("energy", loss)
	e.report["upper"] = loss(s)
	e.report["grad_energy"] = s.length(g)
	e.adam(s, e.cfg.Upper, g)
	if e.cfg.LatentTerm != NotOffset {
		return
	}
	loss = func(w state) float64 { return mean(prior(w.infer(fake, false))) }
	e.report["prior_fake"] = loss(s)
	g = s.gradient("inference", func(w state) float64 { return loss(w) * e.cfg.latentWeight() })
	e.report["grad_prior"] = s.length(g)
	s.infer(fake, true)
	if e.cfg.Generator == nil { // one optimiser for both: decay alone moves G
		for name, zero := range s.gradient("generator", func(state) float64 { return 0 }) {
			g[name] = zero
		}
	}
	e.adam(s, e.cfg.Lower, g)
}

// lower: ⟨E(v̂)⟩ + ⟨‖μ(v̂) − ĥ‖²⟩/d_h + r′(‖v − G(h)‖² + KL), Q constant in the
// second term, and what the variants make of it.
func (e emulation) lower(s state, nth int) {
	sub := nth
	if e.cfg.FreshLatent || nth > 0 {
		sub = nth + 1
	}
	hat, eps, eps2 := e.draws(philox.Latent, sub), e.draws(philox.Posterior, 2*nth), e.draws(philox.Posterior, 2*nth+1)
	first, second := s.pass(), state(nil)
	weights := e.weights(s)
	if e.cfg.Undecoupled {
		second = s.pass()
	}
	frozen := s.clone()
	loss := func(w state, advance bool) float64 {
		t := map[string]float64{}
		fake := w.generate(hat, advance)
		h := []float64(nil)
		if e.cfg.Undecoupled {
			h = hat
		}
		t["energy_gen"] = mean(e.energies(first, w, fake, h))
		sum := t["energy_gen"]
		if e.cfg.LowerLevel == Symmetric || e.cfg.Undecoupled {
			mu, logVar := w.infer(e.v, advance)
			h := posterior(mu, logVar, eps)
			if e.cfg.Undecoupled {
				t["energy_post"], t["entropy"] = mean(e.energies(second, w, e.v, h)), mean(logVar)*latent/2
				sum += t["energy_post"] - t["entropy"]
			}
			if e.cfg.LowerLevel == Symmetric {
				recon, kl := distances(e.v, w.generate(h, advance), pixels), prior(mu, logVar)
				t["recon"], t["kl"], t["ratio"] = mean(recon), mean(kl), mean(weights)
				for i, x := range weights {
					t["vae"] += x * (recon[i] + kl[i]) / float64(len(weights))
				}
				sum += e.cfg.VAEWeight * t["vae"]
			}
		}
		switch e.cfg.LatentTerm {
		case Offset:
			q := frozen
			if e.cfg.Undecoupled {
				q = w
			}
			mu, _ := q.infer(fake, false)
			t["latent"] = mean(distances(mu, hat, latent))
		case NotOffset:
			mu, logVar := w.infer(fake, false)
			t["latent"] = mean(distances(posterior(mu, logVar, eps2), hat, latent))
		}
		if advance && e.cfg.LatentTerm != NoLatent {
			w.infer(fake, true) // Q is in training mode
		}
		for name, v := range t {
			e.report[name] = v
		}
		return sum + e.cfg.latentWeight()*t["latent"]
	}
	still := func(w state) float64 { return loss(w, false) }
	gq, gg := s.gradient("inference", still), s.gradient("generator", still)
	e.report["lower"] = loss(s, true)
	e.report["grad_inference"], e.report["grad_generator"] = s.length(gq), s.length(gg)
	e.adam(s, e.cfg.Lower, gq)
	if e.cfg.Generator != nil {
		e.adam(s, *e.cfg.Generator, gg)
		return
	}
	e.taken[e.cfg.Lower.Name]-- // one step of one optimiser
	e.adam(s, e.cfg.Lower, gg)
}

// weights are r(v)/r′ of each sample, after a pass of E over the data.
func (e emulation) weights(s state) []float64 {
	w := make([]float64, e.n())
	if e.cfg.Ratio == ConstantRatio {
		for i := range w {
			w[i] = 1
		}
		return w
	}
	energies := e.energies(s.pass(), s, e.v, nil)
	for i, x := range energies {
		gap := mean(energies) - x
		if e.cfg.Ratio == SigmoidRatio {
			w[i] = 1 / (1 + math.Exp(-gap))
		} else {
			w[i] = max(0.8, min(1.2, math.Exp(gap)))
		}
	}
	return w
}
