"""BiDVL (Kan et al. 2022): energy E, inference net Q and generator G, decoupled, and joint as in adversarial learning of
energies."""
import torch
import torch.nn.functional as F

import convnets
import modules
import resnets
from philox import LATENT, POSTERIOR, SAMPLING
from state import gradients, norm, rows


def networks(s):
    net, w, d = s.cfg["Net"], s.cfg["Net"]["Width"], s.cfg["Net"]["Latent"]
    kind = convnets if net["Family"] == "conv" else resnets
    energy = convnets.JointEnergy(w, d) if s.cfg["Undecoupled"] else kind.Energy(w)
    parts = {"energy": energy, "inference": kind.Inference(w, d), "generator": kind.Generator(w, d)}
    return {name: modules.load(m, name, s.vars) for name, m in parts.items()}


def step(s):
    t = Training(s)
    if s.cfg["Order"] == "upper-lower":
        t.upper()
    for i in range(s.cfg["LowerSteps"]):
        t.lower(i)
    if s.cfg["Order"] != "upper-lower":
        t.upper()
    for name, m in t.parts.items():
        modules.store(m, name, s.out)


def prior_kl(mean, logvar):
    """KL(N(mean, exp logvar) ‖ N(0, I))."""
    return 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(1)


class Training:
    def __init__(self, s):
        self.s, self.cfg, self.parts = s, s.cfg, networks(s)
        self.E, self.Q, self.G = self.parts.values()
        self.joint = s.cfg["Undecoupled"]
        self.shape = (s.batch, s.cfg["Net"]["Latent"])
        self.z = s.draw.normal(LATENT, 0, self.shape)  # both levels have the same
        self.weight = s.cfg["LatentWeight"] if s.cfg["LatentWeight"] != -1 else 1 / self.shape[1]
        self.done = {}  # steps of each optimiser in this one

    def move(self, a, names, grads):
        """A step of the optimiser with settings a on some parts."""
        params = {}
        for n in names:
            params.update(modules.named(self.parts[n], n))
        per_step = 1 if a["Name"] == self.cfg["Upper"]["Name"] else self.cfg["LowerSteps"]
        if a["Name"] == self.cfg["Lower"]["Name"] and self.cfg["LatentTerm"] == "not-offset":
            per_step += 1
        nth = self.done.get(a["Name"], 0)
        self.done[a["Name"]] = nth + 1
        rate = a["LR"] * a["Decay"] ** self.s.case["epoch"]
        new = self.s.adam(a["Name"], params, grads, a, self.s.index * per_step + nth, rate)
        for n in names:
            modules.assign(self.parts[n], n, new)

    def posterior(self, x, place):
        mean, logvar = self.Q(x)
        return mean, logvar, mean + (logvar / 2).exp() * self.s.draw.normal(POSTERIOR, place, self.shape)

    def upper(self):
        """Eq. 11, or the hinge of Eq. 23."""
        x, report = self.s.images, self.s.report
        with torch.no_grad():
            fake = self.G(self.z)
            h = self.posterior(x, 0)[2] if self.joint else None
        data, model = self.E(x, h), self.E(fake, self.z)
        difference = self.cfg["UpperLoss"] == "difference"
        loss = data.mean() - model.mean() if difference else F.relu(1 + data).mean() + F.relu(1 - model).mean()
        g = gradients(loss, list(self.E.parameters()))
        self.move(self.cfg["Upper"], ["energy"], g)
        report.update(upper=loss, energy_data=data.mean(), energy_fake=model.mean(), grad_energy=norm(g))
        if self.cfg["LatentTerm"] == "not-offset":
            self.prior(fake)

    def prior(self, fake):
        """What the upper level moves besides where the latent term is not offset: Q, and G's moments by zeros."""
        kl = prior_kl(*self.Q(fake)).mean()
        g = gradients(self.weight * kl, list(self.Q.parameters()))
        self.s.report.update(prior_fake=kl, grad_prior=norm(g))
        self.move(self.cfg["Lower"], ["inference", "generator"], g + [torch.zeros_like(p) for p in self.G.parameters()])

    def lower(self, nth):
        """Eq. 12, or 14 where the latent term is offset."""
        s = self.s
        z = self.z if nth == 0 and not self.cfg["FreshLatent"] else s.draw.normal(LATENT, nth + 1, self.shape)
        fake = self.G(z)
        loss = self.E(fake, z).mean()
        s.report["energy_gen"] = loss
        ratio = self.ratio()
        h = None
        if self.cfg["LowerLevel"] == "symmetric" or self.joint:
            mean, logvar, h = self.posterior(s.images, 2 * nth)
        if self.joint:
            energy, entropy = self.E(s.images, h).mean(), 0.5 * logvar.sum(1).mean()
            loss = loss + energy - entropy
            s.report.update(energy_post=energy, entropy=entropy)
        if self.cfg["LowerLevel"] == "symmetric":
            loss = loss + self.cfg["VAEWeight"] * self.vae(ratio, mean, logvar, h)
        loss = loss + self.latent(fake, z, nth)
        s.report["lower"] = loss
        self.descend(loss)

    def ratio(self):
        """r'(v), which weighs the reconstructions."""
        if self.cfg["Ratio"] == "constant":
            return torch.ones(self.s.batch)
        with torch.no_grad():
            e = self.E(self.s.images)
        gap = e.mean() - e
        r = torch.sigmoid(gap) if self.cfg["Ratio"] == "sigmoid" else gap.exp().clamp(0.8, 1.2)
        self.s.report["ratio"] = r.mean()
        return r

    def vae(self, ratio, mean, logvar, h):
        squares, kl = rows((self.s.images - self.G(h)) ** 2).sum(1), prior_kl(mean, logvar)
        loss = (ratio * (squares + kl)).mean()
        self.s.report.update(recon=squares.mean(), kl=kl.mean())
        if self.cfg["Ratio"] != "constant":
            self.s.report["vae"] = loss
        return loss

    def latent(self, fake, z, nth):
        """Latents back from samples: by Q's mean, and Q at rest, or by a draw."""
        if self.cfg["LatentTerm"] == "none":
            return 0
        if self.cfg["LatentTerm"] == "offset":
            for p in self.Q.parameters():
                p.requires_grad_(self.joint)
            back = self.Q(fake)[0]
            for p in self.Q.parameters():
                p.requires_grad_(True)
        else:
            back = self.posterior(fake, 2 * nth + 1)[2]
        loss = ((back - z) ** 2).sum(1).mean()
        self.s.report["latent"] = loss
        return self.weight * loss

    def descend(self, loss):
        q, both = len(list(self.Q.parameters())), list(self.Q.parameters()) + list(self.G.parameters())
        g = gradients(loss, both)
        self.s.report.update(grad_inference=norm(g[:q]), grad_generator=norm(g[q:]))
        if self.cfg.get("Generator"):
            self.move(self.cfg["Lower"], ["inference"], g[:q])
            self.move(self.cfg["Generator"], ["generator"], g[q:])
        else:
            self.move(self.cfg["Lower"], ["inference", "generator"], g)


def look(s):
    parts = networks(s)
    E, Q, G = (m.eval() for m in parts.values())
    with torch.no_grad():
        mean = Q(s.images)[0]
        out = {"sample": G(s.chain(0).normal(SAMPLING, 0, mean.shape)), "encode.code": mean, "recon-eval.recon": G(mean),
               "energies.energy": E(s.images, mean)}
        modules.batch_statistics(Q)
        modules.batch_statistics(G)
        out["recon-batch.recon"] = G(Q(s.images)[0])
    return out
