"""Energy-based models with latents and an approximate posterior, as BiSM and VaGES train them, with either network."""
import torch

import eblvm
import grbm
from objective import see
from philox import HIDDEN
from state import gradient, rows


class Model:
    def __init__(self, cfg):
        self.deep = cfg["Net"]["Kind"] == "eblvm"
        self.hidden, self.temperature = cfg["Net"]["Hidden"], cfg.get("Temperature", 0.1)

    def energy(self, theta, v, h):
        return eblvm.joint_energy(theta, v, h) if self.deep else grbm.GRBM(theta).energy(v, h)

    def posterior(self, phi, v):
        """Its parameters: logits, or mean and log standard deviation."""
        return eblvm.posterior(phi, v) if self.deep else (eblvm.linear(phi, "posterior", v),)

    def noise(self, draw, place, shape):
        return (draw.normal if self.deep else draw.uniform)(HIDDEN, place, shape)

    def sample(self, q, u):
        return q[0] + q[1].exp() * u if self.deep else grbm.soft_sample(q[0], u, self.temperature)

    def logq(self, q, h):
        if self.deep:
            return torch.distributions.Normal(q[0], q[1].exp()).log_prob(h).sum(1)
        return grbm.bernoulli_logq(q[0], h)


def pictures(s):
    """Flat for a Gaussian RBM."""
    return s.images if s.cfg["Net"]["Kind"] in ("eblvm", "ebm") else rows(s.images)


def lower(s, m, theta, phi, x, place):
    """The lower level's loss: KL(q ‖ p) but for log p(v), or the Fisher divergence ½‖∇_h log q/p‖², of MDSM by the level."""
    seen = see(s, x, place)
    q = m.posterior(phi, seen.v)
    h = m.sample(q, m.noise(s.draw, place, (x.shape[0], m.hidden)))
    ratio = m.energy(theta, seen.v, h) + m.logq(q, h)
    if s.cfg["Lower"] == "kl":
        return ratio.mean()
    each = 0.5 * (gradient(ratio, h, graph=True) ** 2).sum(1)
    return (each / seen.levels if s.cfg["Objective"] == "mdsm" else each).mean()


def look(s, m):
    """The posterior's means, and its divergence from the model's: KL of Bernoullis, Fisher's of Gaussians."""
    x, v = pictures(s), see(s, pictures(s), 0).v
    q = m.posterior(s.vars, v)
    if m.deep:
        h = m.sample(q, m.noise(s.draw, 0, (s.batch, m.hidden))).detach().requires_grad_(True)
        gap = 0.5 * (gradient(-m.energy(s.vars, v, h) - m.logq(q, h), h) ** 2).sum(1)
        return {"gap.gap": gap, "encode.code": m.posterior(s.vars, x)[0], **drawn(s)}
    true = torch.distributions.Bernoulli(logits=grbm.GRBM(s.vars).logits(v))
    gap = torch.distributions.kl_divergence(torch.distributions.Bernoulli(logits=q[0]), true).sum(1)
    return {"gap.gap": gap, "encode.code": torch.sigmoid(m.posterior(s.vars, x)[0]), **grbm.look(s)}


def drawn(s):
    """Samples, of pictures and latents together and of pictures with given latents."""
    energy, shape, h = (lambda v, h: eblvm.joint_energy(s.vars, v, h)), eblvm.picture_shape(s), s.given["given"]
    return {"sample": eblvm.annealed(s, energy, [shape, (s.batch, s.cfg["Net"]["Hidden"])]),
            "given": eblvm.annealed(s, lambda v: energy(v, h), [shape])}
