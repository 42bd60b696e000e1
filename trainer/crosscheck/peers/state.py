"""What a dump holds, as tensors of float64, and the step that a peer makes of it."""
import json
import math

import torch

from philox import Draws

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

SEED = 11  # of every step and graph; samplers have CHAIN_SEED
CHAIN_SEED = 13


def tensor(a):
    return torch.tensor(a["x"], dtype=torch.float64).reshape(a["shape"])


def tensors(d):
    return {name: tensor(a) for name, a in d.items()}


def norm(grads):
    return math.sqrt(sum(float((g**2).sum()) for g in grads))


def gradients(loss, params):
    """Zeros where the loss does not depend on a parameter."""
    found = torch.autograd.grad(loss, params, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(params, found)]


def gradient(of, by, graph=False):
    """Of each sample's number by its row."""
    return torch.autograd.grad(of.sum(), by, create_graph=graph)[0]


def rows(x):
    return x.reshape(x.shape[0], -1)


class Inputs:
    """What a graph reads: variables, pictures or sentences, draws."""

    def __init__(self, dump, vars, images, draws):
        self.cfg, self.case, self.vars, self.draw = dump["config"], dump["case"], vars, draws
        self.batch, self.images = self.case["batch"], None if images is None else tensor(images)
        if self.case["tokens"]:
            self.tokens = torch.tensor(self.case["tokens"]).reshape(self.batch, -1)
            self.lengths = torch.tensor(self.case["lengths"])

    def part(self, prefix):
        """Weights of a part, as leaves."""
        return {k: v.clone().requires_grad_(True) for k, v in self.vars.items() if k.startswith(prefix + ".")}


class Step(Inputs):
    """A training step. Peers fill out, the variables after it, and report."""

    def __init__(self, dump, index):
        before = dump["init"] if index == 0 else dump["steps"][index - 1]["vars"]
        super().__init__(dump, tensors(before), dump["steps"][index]["images"], Draws(SEED, index))
        self.index, self.out, self.report = index, dict(self.vars), {}
        self.rate = {}  # of each weight that was moved

    def adam(self, name, params, grads, a, nth, rate=None):
        """One step of torch.optim.Adam on named parameters, the nth (from 0) of this optimiser; what they are after it, as
        leaves. a has the settings; rate is in place of its own."""
        rate = a["LR"] if rate is None else rate
        ps = [torch.nn.Parameter(p.detach().clone()) for p in params.values()]
        more = {"eps": a.get("Eps", 1e-8), "weight_decay": a.get("WeightDecay", 0)}
        opt = torch.optim.Adam(ps, lr=rate, betas=(a["Beta1"], a["Beta2"]), **more)
        for p, k, g in zip(ps, params, grads):
            p.grad, (m, v) = g.detach().clone(), self._moments(name, k, p)
            opt.state[p] = {"step": torch.tensor(float(nth)), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
        opt.step()
        for p, k in zip(ps, params):
            if a["Beta1"] != 0:  # else none is kept
                self.out[f"adam.{name}.{k}.m"] = opt.state[p]["exp_avg"]
            self.out[f"adam.{name}.{k}.v"] = opt.state[p]["exp_avg_sq"]
            self.out[k], self.rate[k] = p.detach(), rate
        return {k: p.detach().requires_grad_(True) for k, p in zip(params, ps)}

    def _moments(self, name, k, p):
        return self.out.get(f"adam.{name}.{k}.m", torch.zeros_like(p)), self.out[f"adam.{name}.{k}.v"]


class Look(Inputs):
    """The graphs of evaluation, and the samplers. given is what a sampler was given."""

    def __init__(self, dump):
        super().__init__(dump, tensors(dump["init"]), dump["images"], Draws(SEED, 0, 5))
        self.given = {k[:-len(".given")]: tensor(a) for k, a in dump["outputs"].items() if k.endswith(".given")}

    def chain(self, step):
        """The draws of a sampler's transition."""
        return Draws(CHAIN_SEED, step)


def read(path):
    with open(path) as f:
        return json.load(f)
