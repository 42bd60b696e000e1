"""SNGAN (Miyato et al. 2018): the hinge loss, several updates of the discriminator for one of the generator."""
import torch
import torch.nn.functional as F

import modules
import resnets
from philox import LATENT, SAMPLING
from state import gradients, norm


def networks(s):
    w, d = s.cfg["Net"]["Width"], s.cfg["Net"]["Latent"]
    return modules.load(resnets.Energy(w), "discriminator", s.vars), modules.load(resnets.Generator(w, d), "generator", s.vars)


def step(s):
    d, g = networks(s)
    a, n, shape = s.cfg["Adam"], s.cfg["Updates"], (s.batch, s.cfg["Net"]["Latent"])
    rate = a["LR"] * (1 - s.index / s.cfg["ScheduleSteps"])
    loss = -d(g(s.draw.normal(LATENT, 1, shape)[0::n])).mean()
    grads = gradients(loss, list(g.parameters()))
    modules.assign(g, "generator", s.adam("generator", modules.named(g, "generator"), grads, a, s.index, rate))
    s.report.update(generator=loss, grad_generator=norm(grads))
    z = s.draw.normal(LATENT, 0, shape)
    for i in range(n):  # the samples take turns
        discriminate(s, d, g, s.images[i::n], z[i::n], s.index * n + i, rate)
    modules.store(d, "discriminator", s.out)
    modules.store(g, "generator", s.out)


def discriminate(s, d, g, x, z, nth, rate):
    real = d(x)
    with torch.no_grad():
        made = g(z)
    fake = d(made)
    loss = F.relu(1 - real).mean() + F.relu(1 + fake).mean()
    grads = gradients(loss, list(d.parameters()))
    modules.assign(d, "discriminator", s.adam("discriminator", modules.named(d, "discriminator"), grads, s.cfg["Adam"], nth, rate))
    s.report.update(discriminator=loss, real=real.mean(), fake=fake.mean(), grad_discriminator=norm(grads))


def look(s):
    g = networks(s)[1].eval()
    with torch.no_grad():
        return {"sample": g(s.chain(0).normal(SAMPLING, 0, (s.batch, s.cfg["Net"]["Latent"]))), "given": g(s.given["given"])}
