"""Contrastive divergence (Hinton 2002), and persistent (Tieleman 2008), of a Gaussian RBM."""
import torch

import grbm
from philox import NEGATIVE
from state import gradients, norm, rows


def step(s):
    x, theta, a = rows(s.images), s.part("model"), s.cfg["Adam"]
    m = grbm.GRBM(theta)
    with torch.no_grad():
        negative = Chain(s, m, x).run()
    data, model = m.free_energy(x).mean(), m.free_energy(negative).mean()
    g = gradients(data - model, list(theta.values()))
    s.adam("model", theta, g, a, s.index)
    s.report.update(loss=data - model, energy_data=data, energy_model=model, grad_model=norm(g))


class Chain:
    """Block Gibbs: each draw has a place of its own."""

    def __init__(self, s, m, x):
        self.s, self.m, self.x = s, m, x

    def hidden(self, v, place):
        u = self.s.draw.uniform(NEGATIVE, place, (self.s.batch, self.m.hidden))
        return (u < torch.sigmoid(self.m.logits(v))).double()

    def visible(self, h, place):
        return self.m.visible(h) + self.m.s * self.s.draw.normal(NEGATIVE, place, self.x.shape)

    def run(self):
        s, sweeps = self.s, self.s.cfg["Sweeps"]
        if not s.cfg["Persistent"]:
            v = self.x
            for i in range(sweeps):
                v = self.visible(self.hidden(v, 2 * i), 2 * i + 1)
            return v
        h = self.hidden(self.x, 2 * sweeps) if s.index == 0 else s.vars["persistent.h"]
        for i in range(sweeps):
            v = self.visible(h, 2 * i)
            h = self.hidden(v, 2 * i + 1)
        s.out["persistent.h"] = h
        return v


look = grbm.look
