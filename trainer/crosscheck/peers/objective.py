"""Score matching objectives of a score S(v), and what they see of the data."""
import numpy as np
import torch

from philox import PERTURBATION
from state import gradient, rows


class Seen:
    """Perturbed data v, the noise that is in them, and its levels."""

    def __init__(self, v, noise=None, levels=None):
        self.v, self.noise, self.levels = v.detach(), noise, levels

    def leaf(self):
        return self.v.clone().requires_grad_(True)


def broadcast(levels, x):
    return levels.reshape(-1, *[1] * (x.dim() - 1))


def see(s, x, place):
    cfg = s.cfg
    if cfg["Objective"] in ("ssm", "ksd"):
        return Seen(x)
    noise = s.draw.normal(PERTURBATION, place, x.shape)
    if cfg["Objective"] == "dsm":
        return Seen(x + cfg["Sigma"] * noise, noise)
    grid = np.linspace if cfg["Levels"]["Spacing"] == "linear" else np.geomspace
    levels = torch.tensor(grid(cfg["Levels"]["Least"], cfg["Levels"]["Most"], x.shape[0]))
    return Seen(x + noise * broadcast(levels, x), noise, levels)


def matched(cfg, score, seen, v, projection):
    """Each sample's loss: DSM (Vincent 2011), MDSM (Li et al. 2019) or SSM (Song et al. 2019)."""
    if cfg["Objective"] == "dsm":
        return 0.5 * (rows(score + seen.noise / cfg["Sigma"]) ** 2).sum(1)
    if cfg["Objective"] == "mdsm":
        return 0.5 * (rows(score / broadcast(seen.levels, score) + seen.noise / cfg["Sigma0"] ** 2) ** 2).sum(1)
    return 0.5 * (rows(score) ** 2).sum(1) + rows(gradient(score * projection, v, graph=True) * projection).sum(1)


def exact(score, v):
    """Score matching with the trace itself (Hyvärinen 2005)."""
    trace = sum(gradient(score[:, i], v, graph=True)[:, i] for i in range(score.shape[1]))
    return 0.5 * (score**2).sum(1) + trace


class Kernel:
    """exp(−‖x − y‖²/2w²) of pairs, its gradients by either, and the trace of the mixed derivatives."""

    def __init__(self, x, y, width):
        x, y = x.detach().requires_grad_(True), y.detach().requires_grad_(True)
        k = torch.exp(-((x - y) ** 2).sum(1) / (2 * width**2))
        by_x, self.by_y = gradient(k, x, graph=True), gradient(k, y, graph=True)
        self.trace = sum(torch.autograd.grad(by_x[:, i].sum(), y, retain_graph=True)[0][:, i] for i in range(x.shape[1]))
        self.k, self.by_x = k.detach(), by_x.detach()

    def stein(self, score_x, score_y):
        """The summand of the kernel Stein discrepancy (Liu et al. 2016)."""
        return (score_x * score_y).sum(1) * self.k + (score_x * self.by_y).sum(1) + (self.by_x * score_y).sum(1) + self.trace


def rate(s, base=None):
    """The learning rate of a step, by torch's scheduler where it falls as a cosine."""
    lr = base or s.cfg["LR"]
    if s.cfg["Schedule"] != "cosine":
        return lr
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, s.cfg["ScheduleSteps"], 1e-6)
    for _ in range(s.index):
        opt.step()
        schedule.step()
    return opt.param_groups[0]["lr"]
