"""The Gaussian restricted Boltzmann machine, v real and h binary:
E(v, h) = Σ (v − b)²/2s² − cᵀh − vᵀW h, of which model.s holds log s."""
import itertools
import math

import torch
import torch.nn.functional as F

from philox import CHAIN
from state import gradient, rows

PARTS = ["s", "w", "b", "c"]


class GRBM:
    def __init__(self, vars):
        self.log_s, self.w, self.b, self.c = (vars["model." + n] for n in PARTS)
        self.s, self.hidden = self.log_s.exp(), self.c.numel()

    def energy(self, v, h):
        square = ((v - self.b) ** 2 / (2 * self.s**2)).sum(-1)
        return square - (h * self.c).sum(-1) - torch.einsum("...i,ij,...j->...", v, self.w, h)

    def logits(self, v):
        """Of p(h = 1 | v)."""
        return self.c + v @ self.w

    def states(self):
        return torch.tensor(list(itertools.product([0.0, 1.0], repeat=self.hidden)))

    def free_energy(self, v):
        """By enumeration of all hidden states, not by softplus."""
        return -torch.logsumexp(torch.stack([-self.energy(v, h.expand(v.shape[0], -1)) for h in self.states()]), 0)

    def visible(self, h):
        """The mean of p(v | h)."""
        return self.b + self.s**2 * (h @ self.w.T)

    def log_z(self):
        """Each h leaves a Gaussian in v; its factor is read off at one point."""
        v, terms = torch.full_like(self.b, 0.3), []
        for h in self.states():
            gauss = torch.distributions.Normal(self.visible(h), self.s)
            terms.append(-self.energy(v, h) - gauss.log_prob(v).sum())
        return torch.logsumexp(torch.stack(terms), 0)


def bernoulli_logq(logits, h):
    return (h * F.logsigmoid(logits) + (1 - h) * F.logsigmoid(-logits)).sum(-1)


def soft_sample(logits, u, temperature=0.1):
    """The binary concrete (Maddison et al. 2017)."""
    return torch.sigmoid((logits + torch.log(u) - torch.log(1 - u)) / temperature)


def look(s):
    """What every Gaussian RBM is asked, whatever trained it."""
    m, x = GRBM(s.vars), rows(s.images).requires_grad_(True)
    score = gradient(-m.free_energy(x), x, graph=True)
    trace = sum(torch.autograd.grad(score[:, i].sum(), x, retain_graph=True)[0][:, i] for i in range(x.shape[1]))
    return {
        "energies.energy": m.free_energy(x), "score.score": score, "fisher.fisher": 0.5 * (score**2).sum(1) + trace,
        "logz-exact": m.log_z(), "logz-ais": anneal(s, m, 5, 7), "logz-back": anneal_back(s, m, s.given["logz-back"], 7),
        "sample": gibbs(s, m, 1000),
    }


def transition(m, v, beta, draw):
    """Gibbs at E_beta, whose interaction and hidden biases are beta times the model's; the Gaussian of v stays."""
    h = (draw.uniform(CHAIN, 0, (v.shape[0], m.hidden)) < torch.sigmoid(beta * m.logits(v))).double()
    return m.b + m.s**2 * (beta * h @ m.w.T) + m.s * draw.normal(CHAIN, 1, v.shape)


def weight(m, v, a, b):
    """log p_b(v) − log p_a(v), both without their normalisers."""
    return (F.softplus(b * m.logits(v)) - F.softplus(a * m.logits(v))).sum(1)


def base_log_z(m):
    return m.log_s.sum() + m.b.numel() / 2 * math.log(2 * math.pi) + m.hidden * math.log(2)


def anneal(s, m, chains, steps):
    """Annealed importance sampling (Neal 2001): log weights."""
    v = m.b + m.s * s.chain(0).normal(CHAIN, 0, (chains, m.b.numel()))
    w = torch.ones(chains) * base_log_z(m)
    for k in range(steps):
        a, b = k / steps, (k + 1) / steps
        w, v = w + weight(m, v, a, b), transition(m, v, b, s.chain(k + 1))
    return w


def anneal_back(s, m, given, steps, settle=100):
    """From given pictures, which first become the model's, back to the base."""
    v = rows(given)
    for k in range(settle):
        v = transition(m, v, 1.0, s.chain(k + 1))
    w = -torch.ones(v.shape[0]) * base_log_z(m)
    for k in range(steps):
        a, b = (steps - k) / steps, (steps - k - 1) / steps
        w, v = w + weight(m, v, a, b), transition(m, v, b, s.chain(settle + k + 1))
    return w


def gibbs(s, m, sweeps):
    """Block Gibbs from uniform noise; the last visible units are means, but for points, 1x1xd."""
    v = s.chain(0).uniform(CHAIN, 0, (s.batch, m.b.numel()))
    for k in range(1, sweeps):
        v = transition(m, v, 1.0, s.chain(k))
    if s.images.shape[1:3] == (1, 1):
        return transition(m, v, 1.0, s.chain(sweeps))
    h = (s.chain(sweeps).uniform(CHAIN, 0, (s.batch, m.hidden)) < torch.sigmoid(m.logits(v))).double()
    return m.visible(h)
