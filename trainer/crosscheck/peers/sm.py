"""Score matching without latents, or with a Gaussian RBM's marginal: DSM, MDSM, SSM, and with the exact trace."""
import eblvm
import grbm
import latent
from objective import exact, matched, rate, see
from philox import PROJECTION
from state import gradient, gradients, norm


def step(s):
    theta = s.part("model")
    loss = losses(s, theta).mean()
    g = gradients(loss, list(theta.values()))
    s.adam("model", theta, g, s.cfg, s.index, rate(s))
    s.report.update(loss=loss, grad_model=norm(g))
    if s.cfg["Objective"] == "mdsm":
        s.report["scaled"] = loss * s.cfg["Sigma0"] ** 4


def deep(s):
    return s.cfg["Net"]["Kind"] == "ebm"


def losses(s, theta):
    x = latent.pictures(s)
    seen = see(s, x, 0)
    v = seen.leaf()
    score = gradient(-(eblvm.visible_energy(theta, v) if deep(s) else grbm.GRBM(theta).free_energy(v)), v, graph=True)
    if s.cfg["Objective"] == "ssm" and s.cfg["Trace"] == "exact":
        return exact(score, v)
    return matched(s.cfg, score, seen, v, s.draw.sign(PROJECTION, 0, x.shape))


def look(s):
    out = {"loss.loss": losses(s, s.vars)}
    if not deep(s):
        return {**out, **grbm.look(s)}
    energy, x = (lambda v: eblvm.visible_energy(s.vars, v)), s.images.requires_grad_(True)
    return {**out, "sample": eblvm.annealed(s, energy, [eblvm.picture_shape(s)]), "energies.energy": energy(x),
            "score.score": gradient(-energy(x), x)}
