package bidvl

import (
	"math"
	"strings"

	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/optim"
)

// A training step in plain loops and float64, written from ALGORITHMS.md §1.3
// and the definitions of the layers, for a network small enough for gradients
// by finite differences. Nothing here uses the graph.

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
