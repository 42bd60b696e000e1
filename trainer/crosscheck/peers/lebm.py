"""The latent-space energy-based prior (Pang et al. 2020), on pictures and on sentences (Eqs. 29 and 39)."""
import torch
import torch.nn.functional as F

import eblvm
import lstm
from philox import CHAIN, LANGEVIN
from state import gradient, gradients, norm, rows

# Stride and padding of the generator's layers.
LAYERS = {"svhn": [(1, 0), (2, 1), (2, 1), (2, 1)], "cifar10": [(1, 0), (2, 1), (2, 1), (1, 1)]}

# Places of draws that the prior's chain has before those of the posterior's.
PRIOR_PLACES = 1001


class Model:
    def __init__(self, s, p):
        self.s, self.p, self.cfg, self.text = s, p, s.cfg, s.cfg.get("Text")
        self.gaussian, self.shape = s.cfg["Prior"] == "gaussian", (s.batch, s.cfg["Net"]["Latent"])

    def energy(self, z):
        for i in (1, 2):
            z = F.leaky_relu(eblvm.linear(self.p, f"energy.linear{i}", z), 0.2)
        return eblvm.linear(self.p, "energy.linear3", z)[:, 0]

    def prior(self, z):
        """−log p(z), but for its normaliser."""
        return 0.5 * (z**2).sum(1) + (0 if self.gaussian else self.energy(z))

    def generate(self, z):
        x, layers = z[:, :, None, None], LAYERS[self.cfg["Net"]["Shape"]]
        for i, (stride, pad) in enumerate(layers, 1):
            x = F.conv_transpose2d(x, self.p[f"generator.conv{i}.weight"], self.p[f"generator.conv{i}.bias"], stride, pad)
            x = F.leaky_relu(x, 0.1) if i < len(layers) else torch.tanh(x)
        return x

    def squares(self, z):
        return rows((self.s.images - self.generate(z)) ** 2).sum(1)

    def sentences(self, z, masks=(1, 1)):
        return lstm.nll(self.p, "generator", self.s.tokens, self.s.lengths, z, masks)

    def likelihood(self, z):
        """−log p(x | z), but for its normaliser."""
        return self.sentences(z) if self.text else self.squares(z) / (2 * self.cfg["Sigma"] ** 2)

    def langevin(self, chain, potential, noise):
        z = noise(0)
        for i in range(chain["Steps"]):
            z = z.detach().requires_grad_(True)
            z = z - 0.5 * chain["Size"] ** 2 * gradient(potential(z), z) + chain["Size"] * noise(i + 1)
        return z.detach()

    def from_posterior(self):
        noise = lambda i: self.s.draw.normal(LANGEVIN, PRIOR_PLACES + i, self.shape)
        return self.langevin(self.cfg["PosteriorChain"], lambda z: self.prior(z) + self.likelihood(z), noise)

    def from_prior(self, noise=None):
        noise = noise or (lambda i: self.s.draw.normal(LANGEVIN, i, self.shape))
        return self.langevin({"Steps": 0} if self.gaussian else self.cfg["PriorChain"], self.prior, noise)


def step(s):
    generator, energy = s.part("generator"), s.part("energy")
    m = Model(s, {**generator, **energy})
    posterior, prior = m.from_posterior(), m.from_prior()
    loss = (m.sentences(posterior, lstm.dropout(s, m.text)) if m.text else m.squares(posterior)).mean()
    g = gradients(loss, list(generator.values()))
    length = lambda z: (z**2).mean(1).sqrt().mean()
    s.report.update(recon=loss, grad_generator=norm(g), norm_posterior=length(posterior), norm_prior=length(prior))
    move(s, "generator", generator, lstm.clipped(g, m.text["Clip"]) if m.text else g, s.cfg["Generator"])
    if m.gaussian:
        return
    above, below = m.energy(posterior).mean(), m.energy(prior).mean()
    g = gradients(above - below, list(energy.values()))
    move(s, "energy", energy, g, s.cfg["Energy"])
    s.report.update(energy=above - below, energy_posterior=above, energy_prior=below, grad_energy=norm(g))


def move(s, name, params, grads, a):
    s.adam(name, params, grads, a, s.index, a["LR"] * a["Decay"] ** s.case["epoch"])


def look(s):
    m = Model(s, s.vars)
    drawn = m.from_prior(lambda i: s.chain(i).normal(CHAIN, 0, m.shape))
    inferred = m.from_posterior()
    if m.text:
        return {"recall.loss": m.sentences(inferred), "recall.blind": m.sentences(m.from_prior()),
                "sample": lstm.write(s, s.vars, "generator", drawn, m.text, s.cfg["PriorChain"]["Steps"] + 1)}
    return {"encode.code": inferred, "recon-eval.recon": m.generate(inferred), "recon-batch.recon": m.generate(inferred),
            "sample": m.generate(drawn), "given": m.generate(s.given["given"])}
