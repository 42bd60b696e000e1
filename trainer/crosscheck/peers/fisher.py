"""A critic that estimates the Fisher divergence of data from a fixed Gaussian RBM."""
import torch
import torch.nn.functional as F

import bernoulli
import eblvm
import grbm
from philox import HIDDEN, PROJECTION
from state import gradient, gradients, norm, rows


def critic(p, x):
    for i in (1, 2):
        x = F.elu(eblvm.linear(p, f"critic.{i}", x))
    return eblvm.linear(p, "critic.3", x)


def score(s, m, phi, x):
    """∇_v log p, exact or by samples of the posterior."""
    if s.cfg["Estimator"] == "exact":
        return gradient(-m.free_energy(x), x)
    q, n = bernoulli.logits(phi, x).detach(), s.cfg["Particles"]
    u = s.draw.uniform(HIDDEN, 0, (s.batch, n, m.hidden))
    return sum(gradient(-m.energy(x, grbm.soft_sample(q, u[:, i])), x) for i in range(n)) / n


def step(s):
    x, m, p, phi = rows(s.images).requires_grad_(True), grbm.GRBM(s.vars), s.part("critic"), None
    if s.cfg["Estimator"] != "exact":
        phi = bernoulli.fit(s, m, x.detach(), s.cfg["LowerSteps"], 1)
    e, f = s.draw.sign(PROJECTION, 0, x.shape), critic(p, x)
    trace = (gradient(f * e, x, graph=True) * e).sum(1)
    loss = -((score(s, m, phi, x) * f).sum(1) + trace - 0.5 * (f**2).sum(1)).mean()
    g = gradients(loss, list(p.values()))
    s.adam("critic", p, g, s.cfg["Adam"], s.index)
    s.report.update(loss=loss, grad_critic=norm(g))


def look(s):
    """With the exact trace. The data are taken to be of N(0, I), whose score is −v."""
    x, m = rows(s.images).requires_grad_(True), grbm.GRBM(s.vars)
    f, true = critic(s.vars, x), gradient(-m.free_energy(x), x)
    trace = sum(torch.autograd.grad(f[:, i].sum(), x, retain_graph=True)[0][:, i] for i in range(x.shape[1]))
    estimate = (score(s, m, s.vars, x) * f).sum(1) + trace - 0.5 * (f**2).sum(1)
    out = {"critic.truth": 0.5 * ((true + x) ** 2).sum(1), "critic.estimate": estimate, "loss.loss": -estimate}
    return out if s.cfg["Estimator"] == "exact" else {**out, **bernoulli.gap(s)}
