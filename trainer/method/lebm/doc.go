// Package lebm is the latent-space energy-based prior [ALGORITHMS.md §4]: a
// generator of samples from latents, and an energy of the latents that both learn
// from samples alone, by short chains of Langevin dynamics and no inference net.
//
//	p(z) ∝ exp(−E(z))·N(z; 0, I),  x = G(z) + σε
//
// A step, on one batch, draws for every slot of the global batch, from z ~ N(0, I)
// anew,
//
//	z⁻ by K₀ times  z ← z − ½s₀²(∇E(z) + z) + s₀ξ                          the prior
//	z⁺ by K₁ times  z ← z − ½s₁²(∇(−log p(x|z)) + ∇E(z) + z) + s₁ξ         the posterior
//
// and then, both chains constant to differentiation, descends
//
//	⟨‖x − G(z⁺)‖²⟩            in the weights of G
//	⟨E(z⁺)⟩ − ⟨E(z⁻)⟩         in those of E.
//
// A sample is G(z⁻). With the fixed Gaussian prior, which it is compared to, there is
// no E, and z⁻ ~ N(0, I).
//
// The published listing has 1/z where the slope of −log N(z; 0, I) is z.
//
// The chains (chain.go) know nothing of what the generator makes: a decoder
// (decoder.go) is all that the model asks of it. generator.go makes pictures. Of
// sentences (text.go, reader.go) −log p(x|z) is a language model's with z at every
// word and in its first state, and G descends that instead.
//
// For long sentences the posterior's chain runs before the step, as programs of their
// own (stage.go): the same draws, and the same latents but for rounding.
//
// A file holds one idea: config, setting, validate, fit, net and preset say what is
// computed; step and report build a step; diagnose words what can go wrong in one;
// model is what is to be had of a trained one.
//
// Everything of this package is a plain value; a graph under construction belongs to
// one goroutine.
package lebm
