"""BiSM (Bao et al. 2020): the upper level's gradient through an unrolled lower level (Eqs. 8, 9 and 14)."""
import math

import latent
from objective import matched, rate, see
from philox import PROJECTION
from state import gradient, gradients, norm
import torch


def step(s):
    cfg, m, x = s.cfg, latent.Model(s.cfg), latent.pictures(s)
    theta, inner = s.part("model"), Inner(s, m, x)
    for i in range(cfg["LowerSteps"]):
        s.report["lower"] = inner.step(theta, i, graph=False)
    inner.keep()
    for i in range(cfg["Unroll"]):
        loss = inner.step(theta, cfg["LowerSteps"] + i, graph=True)
        s.report.setdefault("lower", loss)
    loss = upper(s, m, x, theta, inner.phi).mean()
    g = gradients(loss, list(theta.values()))
    s.adam("upper", theta, g, cfg, s.index, rate(s))
    s.report.update(upper=loss, grad_model=norm(g))
    if cfg["Objective"] == "mdsm":
        s.report["scaled"] = loss * cfg["Sigma0"] ** 4


def upper(s, m, x, theta, phi):
    """Score matching of S = ∇_v log p̃(v, h)/q(h|v), h ~ q drawn without gradient to v."""
    seen = see(s, x, 0)
    v = seen.leaf()
    h = m.sample(m.posterior(phi, seen.v), m.noise(s.draw, 0, (s.batch, m.hidden)))
    score = gradient(-m.energy(theta, v, h) - m.logq(m.posterior(phi, v), h), v, graph=True)
    projection = s.draw.sign(PROJECTION, 0, x.shape) if s.cfg["Objective"] == "ssm" else None
    return matched(s.cfg, score, seen, v, projection)


class Inner:
    """The lower level's optimiser, written out, so that a gradient passes through it."""

    def __init__(self, s, m, x):
        self.s, self.m, self.x, self.phi = s, m, x, s.part("posterior")
        self.sgd, self.rate = s.cfg["Inner"] == "sgd", rate(s, s.cfg["InnerLR"] or None)
        self.first, self.second = (({} if self.sgd else {k: s.vars[f"adam.lower.{k}.{n}"] for k in self.phi}) for n in "mv")

    def step(self, theta, i, graph):
        loss = latent.lower(self.s, self.m, theta, self.phi, self.x, 1 + i)
        grads = dict(zip(self.phi, torch.autograd.grad(loss, list(self.phi.values()), create_graph=graph)))
        self.phi = {k: p - self.rate * (grads[k] if self.sgd else self.adam(k, grads[k], i)) for k, p in self.phi.items()}
        if not graph:
            self.phi = {k: p.detach().requires_grad_(True) for k, p in self.phi.items()}
        return loss

    def adam(self, k, g, i):
        """Adam's step; the tiny number below the root keeps its derivative at 0 finite."""
        b1, b2 = self.s.cfg["Beta1"], self.s.cfg["Beta2"]
        t = self.s.index * self.s.cfg["LowerSteps"] + i + 1
        self.first[k], self.second[k] = b1 * self.first[k] + (1 - b1) * g, b2 * self.second[k] + (1 - b2) * g**2
        root = (self.second[k] + 1e-16).sqrt() / math.sqrt(1 - b2**t)
        return self.first[k] / (1 - b1**t) / (root + 1e-8)

    def keep(self):
        """What stays is that before the unrolled steps."""
        for k in self.phi:
            self.s.out[k], self.s.rate[k] = self.phi[k].detach(), self.rate
            if not self.sgd:
                self.s.out[f"adam.lower.{k}.m"], self.s.out[f"adam.lower.{k}.v"] = self.first[k].detach(), self.second[k].detach()


def look(s):
    m = latent.Model(s.cfg)
    return {"loss.loss": upper(s, m, latent.pictures(s), s.vars, s.vars), **latent.look(s, m)}
