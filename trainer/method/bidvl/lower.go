package bidvl

import (
	"slices"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// lower takes the nth step of ω = (Q, G), from 0, E frozen [Eq. 13]:
//
//	⟨E(v̂)⟩ + λ_h·latent term + r′⟨‖v − G(h)‖² + KL(q(h|v) ‖ p(h))⟩
//
// with h = μ(v) + σ(v)⊙ε. The undecoupled model has E(v̂, ĥ), and adds
// KL(q(h|v) ‖ p(h|v)) but for its constant: ⟨E(v, h)⟩ − ⟨½Σ log σ²(v)⟩.
func (s *step) lower(nth int) {
	c := s.Context
	latent := s.latent
	if nth > 0 || s.cfg.FreshLatent {
		latent = s.draw(philox.Latent, uint16(nth+1))
	}
	fake := s.net.Generator(c, latent)
	energies := s.energies(fake, latent)
	gen := c.Mean(energies)
	s.means["energy_gen"] = gen

	var data, vae graph.ID
	if s.cfg.hasVAE() || s.cfg.Undecoupled {
		data, vae = s.dataTerms(s.draw(philox.Posterior, uint16(2*nth)))
	}
	loss := gen
	if s.cfg.LatentTerm != NoLatent {
		match := s.latentTerm(fake, latent, uint16(2*nth+1))
		s.means["latent"] = match
		loss = c.Add(loss, c.Scale(match, s.cfg.latentWeight()))
	}
	if s.cfg.Undecoupled {
		loss = c.Add(loss, data)
	}
	if s.cfg.hasVAE() {
		loss = c.Add(loss, c.Scale(vae, s.cfg.VAEWeight))
	}
	s.means["lower"] = loss
	s.stepLower(loss)
}

// dataTerms are the terms of the lower level that see the data, scalars: those that the
// undecoupled model adds, and the VAE's, weighed by r(v)/r′. 0 is none. eps is ε of h, (B, Latent).
func (s *step) dataTerms(eps graph.ID) (data, vae graph.ID) {
	c := s.Context
	var weights graph.ID
	if s.cfg.Ratio != ConstantRatio {
		weights = ratio(c, s.cfg.Ratio, s.energies(s.v, 0))
		s.means["ratio"] = c.Mean(weights)
	}
	mean, logVar := s.net.Inference(c, s.v)
	h := reparameterise(c, mean, logVar, eps)
	if s.cfg.Undecoupled {
		e, ent := c.Mean(s.energies(s.v, h)), entropy(c, logVar)
		s.means["energy_post"], s.means["entropy"] = e, ent
		data = c.Sub(e, ent)
	}
	if !s.cfg.hasVAE() {
		return data, 0
	}
	drawn := s.net.Generator(c, h)
	recon, kl := meanSquare(c, s.v, drawn), klPrior(c, mean, logVar)
	s.means["recon"], s.means["kl"] = recon, kl
	if weights == 0 {
		return data, c.Add(recon, kl)
	}
	vae = weighed(c, weights, s.v, drawn, mean, logVar)
	s.means["vae"] = vae
	return data, vae
}

// latentTerm is ⟨‖μ(v̂) − ĥ‖²⟩, with Q's weights frozen unless the model is
// undecoupled, or, not offset, ⟨‖h̃ − ĥ‖²⟩ with h̃ ~ q(h|v̂): a scalar. v̂ is fake,
// (B, C, H, W), and ĥ is latent, (B, Latent).
func (s *step) latentTerm(fake, latent graph.ID, sub uint16) graph.ID {
	c := s.Context
	if s.cfg.LatentTerm == NotOffset {
		mean, logVar := s.net.Inference(c, fake)
		return meanSquare(c, reparameterise(c, mean, logVar, s.draw(philox.Posterior, sub)), latent)
	}
	c.Frozen = !s.cfg.Undecoupled
	mean, _ := s.net.Inference(c, fake)
	c.Frozen = false
	return meanSquare(c, mean, latent)
}

// stepLower steps Q and G against loss.
func (s *step) stepLower(loss graph.ID) {
	q, g := s.Params("inference"), s.Params("generator")
	both := slices.Concat(q, g)
	grads := s.Grad(loss, nn.IDs(both)...)
	gq := s.sync("inference", grads[:len(q)])
	gg := s.sync("generator", grads[len(q):])
	if s.cfg.Generator != nil {
		s.adam(s.cfg.Lower, q, gq)
		s.adam(*s.cfg.Generator, g, gg)
		return
	}
	s.adam(s.cfg.Lower, both, slices.Concat(gq, gg))
}
