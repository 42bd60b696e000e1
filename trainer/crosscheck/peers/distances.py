"""Distances between sets of features, from their definitions."""
import math

import numpy as np


def frechet(x, y):
    """tr (C₁C₂)^½ is the sum of the singular values of AᵀB where C₁ = AAᵀ and C₂ = BBᵀ."""
    a, b = ((m - m.mean(0)).T / math.sqrt(len(m) - 1) for m in (x, y))
    means = ((x.mean(0) - y.mean(0)) ** 2).sum()
    return means + (a**2).sum() + (b**2).sum() - 2 * np.linalg.svd(a.T @ b, compute_uv=False).sum()


def kid(x, y):
    """The unbiased estimate with the cubic kernel (Bińkowski et al. 2018), of as many of each as both have."""
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    k = lambda a, b: (a @ b.T / a.shape[1] + 1) ** 3
    within = lambda a: (a.sum() - np.trace(a)) / (n * (n - 1))
    return within(k(x, x)) + within(k(y, y)) - 2 * k(x, y).mean()


def between(a, b):
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


def radii(x, k):
    """The distance of each to its k-th nearest other."""
    d = between(x, x)
    np.fill_diagonal(d, np.inf)
    return np.sort(d, 1)[:, k - 1]


def prdc(x, y):
    """Of samples y beside real x: precision and recall (Kynkäänniemi et al. 2019, k = 3), density and coverage (Naeem
    et al. 2020, k = 5)."""
    d, five = between(y, x), radii(x, 5)
    return {"Precision": (d <= radii(x, 3)[None]).any(1).mean(), "Recall": (d <= radii(y, 3)[:, None]).any(0).mean(),
            "Density": (d <= five[None]).sum() / 5 / len(y), "Coverage": (d <= five[None]).any(0).mean()}


def nearest(x, y):
    return between(y, x).min(1) / math.sqrt(x.shape[1])


def inception(p, splits=10):
    scores = []
    for i in range(splits):
        a = p[i * len(p) // splits:(i + 1) * len(p) // splits]
        scores.append(np.exp((a * (np.log(a) - np.log(a.mean(0)))).sum(1).mean()))
    return [np.mean(scores), np.std(scores)]
