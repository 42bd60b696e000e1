"""The factorised Bernoulli posterior of a Gaussian RBM, and its steps."""
from torch.distributions import Bernoulli, kl_divergence

import eblvm
import grbm
from philox import HIDDEN
from state import gradients, norm, rows


def logits(phi, v):
    return eblvm.linear(phi, "posterior", v)


def fit(s, m, x, steps, place):
    """Some steps of Adam on KL(q ‖ p) but for log p(v), with soft samples; the posterior after them."""
    phi = s.part("posterior")
    for i in range(steps):
        q = logits(phi, x)
        h = grbm.soft_sample(q, s.draw.uniform(HIDDEN, place + i, (s.batch, m.hidden)))
        loss = (m.energy(x, h) + grbm.bernoulli_logq(q, h)).mean()
        g = gradients(loss, list(phi.values()))
        s.report.update(posterior=loss, grad_posterior=norm(g))
        phi = s.adam("posterior", phi, g, s.cfg["Adam"], s.index * steps + i)
    return phi


def gap(s):
    """KL of the posterior from the model's."""
    x = rows(s.images)
    q, p = Bernoulli(logits=logits(s.vars, x)), Bernoulli(logits=grbm.GRBM(s.vars).logits(x))
    return {"gap.gap": kl_divergence(q, p).sum(1)}
