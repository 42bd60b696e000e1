"""The deep energy-based models of the score matching papers: with latents (BiSM, VaGES) and without (MDSM, Li et al. 2019)."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from philox import CHAIN
from state import gradient


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def block(p, name, x, down):
    """A residual block of ELUs, without normalisation."""
    y = F.conv2d(F.elu(x), p[name + "conv1.weight"], None, 1, 1)
    y = F.conv2d(F.elu(y), p[name + "conv2.weight"], p[name + "conv2.bias"], 1, 1)
    if down:
        x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
    return y + F.conv2d(x, p[name + "shortcut.weight"], p[name + "shortcut.bias"])


def trunk(p, v):
    depth = max(int(k.split(".block")[1][0]) for k in p if ".block" in k)
    x = F.conv2d(v, p["model.conv.weight"], p["model.conv.bias"], 1, 1)
    for level in (1, 2, 3):
        for j in range(1, depth + 1):
            x = block(p, f"model.level{level}.block{j}.", x, j == 1)
    return x.reshape(v.shape[0], -1)


def joint_energy(p, v, h):
    """E(v, h) = ‖g₂(g₁(v) + h, h)‖²."""
    f = linear(p, "model.features", trunk(p, v))
    return (F.elu(linear(p, "model.head", torch.cat([f + h, h], 1))) ** 2).sum(1)


def visible_energy(p, v):
    """Without latents: a(x) b(x) + c(x²)."""
    x = trunk(p, v)
    return (linear(p, "model.head.a", x) * linear(p, "model.head.b", x) + linear(p, "model.head.c", x**2))[:, 0]


def posterior(p, v):
    """Mean and log standard deviation."""
    x = v
    for i in (1, 2, 3):
        x = F.leaky_relu(F.conv2d(x, p[f"posterior.conv{i}.weight"], p[f"posterior.conv{i}.bias"], 2, 1), 0.2)
    x = x.reshape(v.shape[0], -1)
    return linear(p, "posterior.mean", x), linear(p, "posterior.logstd", x)


def temperatures(share):
    """Of annealed Langevin dynamics: hot, cooling, and last to 0."""
    hot, cool, last = (math.ceil(share * n) for n in (500, 2000, 200))
    return [100.0] * hot + [100 * 100 ** (-i / cool) for i in range(cool)] + list(np.linspace(1, 0, last))


def annealed(s, energy, shapes, rate=0.02):
    """Langevin dynamics of arrays of these shapes, and one step of denoising of the first."""
    xs = [0.5 + s.chain(0).normal(CHAIN, i, shape) for i, shape in enumerate(shapes)]
    for k, t in enumerate(temperatures(s.cfg["SampleShare"])):
        xs = [x.detach().requires_grad_(True) for x in xs]
        grads = torch.autograd.grad(energy(*xs).sum(), xs)
        noise = [s.chain(k + 1).normal(CHAIN, i, shape) for i, shape in enumerate(shapes)]
        xs = [x - 0.5 * rate**2 * g + math.sqrt(t) * rate * n for x, g, n in zip(xs, grads, noise)]
    xs = [x.detach().requires_grad_(True) for x in xs]
    return (xs[0] - s.cfg["Sigma0"] ** 2 * gradient(energy(*xs), xs[0])).clamp(0, 1)


def picture_shape(s):
    return s.batch, s.cfg["Net"]["C"], s.cfg["Net"]["H"], s.cfg["Net"]["W"]
