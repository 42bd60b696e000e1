"""The variational autoencoder (Kingma and Welling 2014), with BiDVL's networks and a weight on KL."""
import math

import torch
from torch.distributions import Normal, kl_divergence

import convnets
import modules
from philox import POSTERIOR, SAMPLING
from state import gradients, norm, rows


def networks(s):
    w, d = s.cfg["Net"]["Width"], s.cfg["Net"]["Latent"]
    return [modules.load(m(w, d), n, s.vars) for m, n in ((convnets.Inference, "inference"), (convnets.Generator, "generator"))]


def bound(s, q, g):
    """Each sample's loss and KL, and the reconstruction."""
    mean, logvar = q(s.images)
    sd = (logvar / 2).exp()
    recon = g(mean + sd * s.draw.normal(POSTERIOR, 0, mean.shape))
    nll = -rows(Normal(recon, math.sqrt(s.cfg["Variance"])).log_prob(s.images)).sum(1)
    kl = kl_divergence(Normal(mean, sd), Normal(torch.zeros_like(mean), 1.0)).sum(1)
    return nll + s.cfg["Beta"] * kl, kl, recon


def step(s):
    q, g = networks(s)
    losses, kl, recon = bound(s, q, g)
    params, a = {**modules.named(q, "inference"), **modules.named(g, "generator")}, s.cfg["Adam"]
    grads = gradients(losses.mean(), list(params.values()))
    new = s.adam("vae", params, grads, a, s.index, a["LR"] * a["Decay"] ** s.case["epoch"])
    for m, n in ((q, "inference"), (g, "generator")):
        modules.assign(m, n, new)
        modules.store(m, n, s.out)
    s.report.update(loss=losses.mean(), recon=rows((s.images - recon) ** 2).sum(1).mean(), kl=kl.mean(), grad=norm(grads))


def look(s):
    q, g = (m.eval() for m in networks(s))
    with torch.no_grad():
        mean = q(s.images)[0]
        out = {"sample": g(s.chain(0).normal(SAMPLING, 0, mean.shape)), "encode.code": mean, "recon-eval.recon": g(mean),
               "loss.loss": bound(s, q, g)[0],
               "given": g(s.given["given"])}
        modules.batch_statistics(q)
        modules.batch_statistics(g)
        out["recon-batch.recon"] = g(q(s.images)[0])
    return out
