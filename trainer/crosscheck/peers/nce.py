"""Noise contrastive estimation (Gutmann and Hyvärinen 2010), and variational (Rhodes and Gutmann 2019), of a Gaussian RBM,
against N(0, I)."""
import math

import torch
import torch.nn.functional as F

import bernoulli
import grbm
from philox import CONTRAST, HIDDEN
from state import gradients, norm, rows


def step(s):
    cfg, x, theta = s.cfg, rows(s.images), {**s.part("model"), **s.part("contrast")}
    m, steps = grbm.GRBM(theta), s.cfg["PosteriorSteps"] if s.cfg["Variational"] else 0
    phi = bernoulli.fit(s, m, x, steps, 0)
    y = s.draw.normal(CONTRAST, 0, x.shape)
    data = -F.logsigmoid(ratio(s, m, theta, phi, x, 1, steps)).mean()
    noise = -F.logsigmoid(-ratio(s, m, theta, phi, y, cfg["NoiseLatents"], steps + 1)).mean()
    g = gradients(data + noise, list(theta.values()))
    s.adam("model", theta, g, cfg["Adam"], s.index)
    s.report.update(loss=data + noise, data=data, noise=noise, log_z=s.vars["contrast.log_z"], grad_model=norm(g))


def ratio(s, m, theta, phi, v, samples, place):
    """log p(v)/N(v; 0, I), p by importance sampling where it is variational."""
    if s.cfg["Variational"]:
        q = bernoulli.logits(phi, v).detach()
        u = s.draw.uniform(HIDDEN, place, (s.batch, samples, m.hidden))
        h = (u < torch.sigmoid(q)[:, None]).double()
        each = [-m.energy(v, h[:, i]) - grbm.bernoulli_logq(q, h[:, i]) for i in range(samples)]
        f = torch.logsumexp(torch.stack(each, 1), 1) - math.log(samples)
    else:
        f = -m.free_energy(v)
    return f - theta["contrast.log_z"] - torch.distributions.Normal(0.0, 1.0).log_prob(v).sum(1)


look = grbm.look
