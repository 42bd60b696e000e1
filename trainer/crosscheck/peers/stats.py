"""The statistics of evaluation beside their definitions."""
import math

import numpy as np
import torch
import torch.nn.functional as F

import distances
import kneser_ney
import swd

# A root of singular matrices, pictures in float32, and an optimum that either side ends near.
LOOSER = {"lowrank frechet": 1e-7, "swd": 1e-7, "svm": 1e-7}


def compare(table, dump):
    for name, got, want in [*features(dump["features"]), *lists(dump), *machines(dump["svm"]), *ngrams(dump["ngram"])]:
        got, want = np.atleast_1d(np.array(got, float)), np.atleast_1d(np.array(want, float))
        error = np.abs(got - want).max() / max(np.abs(want).max(), 1e-12)
        table.add(name, "statistics", got.size, float(error), name, LOOSER.get(name))


def matrix(m):
    return np.array(m["X"]).reshape(m["N"], m["D"])


def features(dump):
    for name, q in dump.items():
        x, y = matrix(q["x"]), matrix(q["y"])
        yield f"{name} frechet", q["frechet"], distances.frechet(x, y)
        yield f"{name} kid", q["kid"], distances.kid(x, y)
        p = distances.prdc(x, y)
        yield f"{name} prdc", [q["prdc"][k] for k in p], list(p.values())
        yield f"{name} nearest", q["nearest"], distances.nearest(x, y)


def lists(dump):
    q, n = dump["inception"], dump["numbers"]
    yield "inception score", [q["mean"], q["sd"]], distances.inception(matrix(q["p"]))
    pos, neg = np.array(n["pos"])[:, None], np.array(n["neg"])
    yield "auroc", n["auroc"], (pos > neg).mean() + 0.5 * (pos == neg).mean()
    w, v = np.array(n["weights"]), n["logmeanexp"]
    e = np.exp(w - w.max())
    error, effective = e.std(ddof=1) / math.sqrt(len(e)) / e.mean(), e.sum() ** 2 / (e**2).sum()
    yield "log mean exp", v["Value"], w.max() + math.log(e.mean())
    yield "its error, ess", [v["SE"], v["ESS"]], [error, effective]
    quantiles = n["described"]["Quantiles"]
    yield "quantiles", [a["Value"] for a in quantiles], [np.quantile(w, a["P"]) for a in quantiles]
    yield "swd", dump["swd"]["distance"], swd.distance(dump["swd"])


def machines(q):
    """The dual's optimum beside the primal's: ½‖w‖² and the squared hinge, one class against the others."""
    labels, x = np.array(q["labels"]), np.array(q["x"]).reshape(len(q["labels"]), -1)
    d = x.shape[1]
    with_bias = torch.tensor(np.c_[x, np.ones(len(x))])
    for c in range(3):
        yield "svm", q["w"][d * c:d * c + d] + [q["b"][c]], primal(with_bias, torch.tensor(np.where(labels == c, 1.0, -1.0)))


def primal(x, y):
    w = torch.zeros(x.shape[1], requires_grad=True)
    opt = torch.optim.LBFGS([w], max_iter=2000, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = 0.5 * (w**2).sum() + (F.relu(1 - y * (x @ w)) ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    return w.detach().numpy()


def ngrams(q):
    for order, got in q["orders"].items():
        m = kneser_ney.Model(int(order), q["vocabulary"], q["train"])
        nll, words = m.nll(q["test"])
        yield f"{order}-grams", [got["nll"], got["words"], got["perplexity"]], [nll, words, math.exp(nll / words)]
        yield f"{order}-gram discounts", [a for d in got["discounts"] for a in d["D"]], [a for d in m.discounts[1:] for a in d]
