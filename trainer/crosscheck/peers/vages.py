"""VaGES (Bao et al. 2021): the variational estimate of ∇_v log p and of its derivative by θ, whose covariance is taken here
sample by sample and not by a surrogate."""
import math

import torch

import grbm
import latent
from objective import Kernel, broadcast, matched, rate, see
from philox import HIDDEN, PROJECTION, REFINE
from state import gradient, gradients, norm, rows


def step(s):
    cfg, x = s.cfg, latent.pictures(s)
    est = Estimator(s, s.part("model"), s.part("posterior"))
    if est.variational:
        est.phi = fit(s, est, x)
    loss, derivative = OBJECTIVES[cfg["Objective"]](s, est, x)
    g = derivative()
    s.adam("upper", est.theta, g, cfg, s.index, rate(s))
    s.report.update(upper=loss.mean(), grad_model=norm(g))
    if cfg["Objective"] == "mdsm":
        s.report["scaled"] = loss.mean() * cfg["Sigma0"] ** 4


def fit(s, est, x):
    """The lower level."""
    phi, steps, lr = est.phi, s.cfg["LowerSteps"], rate(s, s.cfg["PosteriorLR"] or None)
    for i in range(steps):
        loss = latent.lower(s, est.m, est.theta, phi, x, 3 + i)
        s.report["lower"] = loss
        phi = s.adam("lower", phi, gradients(loss, list(phi.values())), s.cfg, s.index * steps + i, lr)
    return phi


class Estimator:
    """Of the score, and of the derivative by θ of what is a function of it."""

    def __init__(self, s, theta, phi):
        self.s, self.m, self.theta, self.phi = s, latent.Model(s.cfg), theta, phi
        self.n, self.kind = s.cfg["Particles"], s.cfg["Estimator"]
        self.variational = self.kind == "variational"

    def energy(self, v, h):
        return self.m.energy(self.theta, v, h)

    def particles(self, v, place, which=slice(None)):
        """Samples of the posterior, refined by Langevin dynamics; v has the rows which of the batch."""
        shape = (self.s.batch, self.n, self.m.hidden)
        u, q, r = self.m.noise(self.s.draw, place, shape)[which], self.m.posterior(self.phi, v), self.s.cfg["Refine"]
        hs = [self.m.sample(q, u[:, l]).detach() for l in range(self.n)]
        for i in range(r["Steps"]):
            noise = self.s.draw.normal(REFINE, place * 1000 + i, shape)[which]
            hs = [self.refined(v, h, r, noise[:, l]) for l, h in enumerate(hs)]
        return hs

    def refined(self, v, h, r, noise):
        h = h.requires_grad_(True)
        return (h - 0.5 * r["Rate"] * gradient(self.energy(v, h), h) + r["Noise"] * noise).detach()

    def marginal(self, v, which):
        """log p̃(v), enumerated, or by importance sampling from uniform latents."""
        if self.kind == "exact":
            return -grbm.GRBM(self.theta).free_energy(v)
        u = self.s.draw.uniform(HIDDEN, 0, (self.s.batch, self.n, self.m.hidden))[which]
        each = torch.stack([-self.energy(v, (u[:, l] > 0.5).double()) for l in range(self.n)], 1)
        return torch.logsumexp(each, 1) - math.log(self.n) + self.m.hidden * math.log(2)

    def score(self, v):
        v = v.detach().requires_grad_(True)
        if not self.variational:
            return gradient(self.marginal(v, slice(None)), v)
        return sum(gradient(self.potential(v, h), v) for h in self.particles(v.detach(), 0)) / self.n

    def potential(self, v, h):
        """Whose gradient's mean over h is the score; the control variate's mean is 0."""
        if not self.s.cfg["ControlVariate"]:
            return -self.energy(v, h)
        return -self.energy(v, h) - self.m.logq(self.m.posterior(self.phi, v), h)

    def along(self, v, functional, which=slice(None)):
        """The mean over samples of the derivative by θ of functional(log p, v), which is linear in ∇_v log p̃(v, h): that
        of its mean over the posterior, and its covariance with ∇_θ log p̃(v, h)."""
        v, theta = v.detach().requires_grad_(True), list(self.theta.values())
        if not self.variational:
            return gradients(functional(self.marginal(v, which), v).mean(), theta)
        total = [torch.zeros_like(t) for t in theta]
        for h in self.particles(v.detach(), 1, which):
            g = gradients(functional(-self.energy(v, h), v).mean(), theta)
            total = [a + b / self.n for a, b in zip(total, g)]
        return total if self.s.cfg["WithoutCovariance"] else [a + b for a, b in zip(total, self.covariance(v, functional, which))]

    def covariance(self, v, functional, which):
        theta, hs, n = list(self.theta.values()), self.particles(v.detach(), 2, which), v.shape[0]
        total = [torch.zeros_like(t) for t in theta]
        for b in range(n):
            fs = [functional(-self.energy(v, h), v)[b].detach() for h in hs]
            gs = [gradients(-self.energy(v, h)[b], theta) for h in hs]
            f_mean, g_mean = sum(fs) / self.n, [sum(each) / self.n for each in zip(*gs)]
            for f, g in zip(fs, gs):
                total = [t + (f - f_mean) * (a - mean) / (self.n - 1) / n for t, a, mean in zip(total, g, g_mean)]
        return total


def weighted(z):
    """The functional zᵀ∇_v log p."""
    z = z.detach()
    return lambda logp, v: rows(z * gradient(logp, v, graph=True)).sum(1)


# The objectives: each sample's loss, and its mean's derivative by θ, when asked.


def denoising(s, est, x):
    """DSM and MDSM."""
    seen = see(s, x, 0)
    score = est.score(seen.v)
    if s.cfg["Objective"] == "dsm":
        z = score + seen.noise / s.cfg["Sigma"]
        return matched(s.cfg, score, seen, None, None), lambda: est.along(seen.v, weighted(z))
    levels = broadcast(seen.levels, score)
    z = (score / levels + seen.noise / s.cfg["Sigma0"] ** 2) / levels
    return matched(s.cfg, score, seen, None, None), lambda: est.along(seen.v, weighted(z))


def sliced(s, est, x):
    """SSM: u·∇²log p·u is the mean of that of log p̃(v, h), and the variance of u·∇log p̃(v, h)."""
    v, u = x.detach().requires_grad_(True), s.draw.sign(PROJECTION, 0, x.shape)
    score = est.score(x)
    slopes, curvatures = [], []
    for h in est.particles(x, 0):
        slope = rows(gradient(-est.energy(v, h), v, graph=True) * u).sum(1)
        curvatures.append(rows(gradient(slope, v) * u).sum(1))
        slopes.append(slope.detach())
    slopes = torch.stack(slopes)
    loss = 0.5 * (rows(score) ** 2).sum(1) + sum(curvatures) / est.n + slopes.var(0, unbiased=True)

    def functional(logp, v):
        g = gradient(logp, v, graph=True)
        slope = rows(u * g).sum(1)
        curvature = rows(u * gradient(slope, v, graph=True)).sum(1)
        return rows(score * g).sum(1) + curvature + slope**2 - 2 * slopes.mean(0) * slope

    return loss, lambda: est.along(x, functional)


def stein(s, est, x):
    """KSD of the pairs of rows (0, 1), (2, 3), …; only the second's score has a derivative."""
    seen = see(s, x, 0)
    score = est.score(seen.v)
    v, sc = rows(seen.v), rows(score)
    k = Kernel(v[0::2], v[1::2], s.cfg["Bandwidth"])
    z = (k.k[:, None] * sc[0::2] + k.by_x).reshape(seen.v[1::2].shape)
    return k.stein(sc[0::2], sc[1::2]), lambda: est.along(seen.v[1::2], weighted(z), slice(1, None, 2))


OBJECTIVES = {"dsm": denoising, "mdsm": denoising, "ssm": sliced, "ksd": stein}


def look(s):
    est, x = Estimator(s, s.vars, s.vars), latent.pictures(s)
    out = latent.look(s, est.m) if est.variational else grbm.look(s)
    if s.cfg["Objective"] != "ksd":
        return {**out, "loss.loss": OBJECTIVES[s.cfg["Objective"]](s, est, x)[0]}
    v, score = rows(x), rows(est.score(x))
    k = Kernel(v, v.roll(-1, 0), s.cfg["Bandwidth"])  # each with the next one
    return {**out, "loss.loss": k.stein(score, score.roll(-1, 0))}
