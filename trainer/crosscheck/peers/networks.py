"""The networks whose features samples are judged by: Inception, random ones, a classifier."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import bars
import inception
import philox
from state import tensor, tensors

AUGMENT = 5  # the purpose of mirroring


def compare(table, dump):
    of_inception(table, dump["inception"])
    for d in dump["resize"]:
        add(table, "resize", d["outputs"], {"resize": inception.resize(tensor(d["pictures"]))})
    of_random(table, dump["random"])
    of_classifier(table, dump["classifier"])


def add(table, case, outputs, found):
    """All outputs of the program, each beside what was found for it."""
    for name, a in outputs.items():
        if name not in found:
            table.fail(case, f"the peer computes no {name}")
            continue
        got, want = tensor(a), found[name].detach()
        if got.shape != want.shape:
            table.fail(case, f"{name} is {list(got.shape)}, the peer's {list(want.shape)}")
            continue
        table.add(case, "features", got.numel(), bars.relative(got, want), name)
    for name in found:
        if name not in outputs:
            table.fail(case, f"the program computes no {name}")


def of_inception(table, d):
    net = inception.network()
    mine = {k: list(v.shape) for k, v in net.state_dict().items() if not k.endswith("tracked")}
    if mine != d["drawn"]:
        table.fail("inception", f"other weights: {sorted(set(map(str, mine.items())) ^ set(map(str, d['drawn'].items())))}")
    with torch.no_grad():
        add(table, "inception", d["outputs"], net.layers(tensor(d["pictures"])))


def convolutions(p, prefix, x, slope):
    """3×3 with a stride of 2, leaky, down to a side of 2: the means of every layer's channels."""
    means = []
    while min(x.shape[2:]) > 2:
        layer = f"{prefix}.conv{len(means) + 1}"
        x = F.leaky_relu(F.conv2d(x, p[layer + ".weight"], p[layer + ".bias"], stride=2, padding=1), slope)
        means.append(x.mean((2, 3)))
    return means


def widths(table, case, p, prefix, want):
    found = [p[f"{prefix}.conv{i + 1}.weight"].shape[0] for i in range(len(want))]
    if found != want:
        table.fail(case, f"the layers have {found} channels, want {want}")


def flat(x, like):
    return torch.tensor(x).reshape(like.shape)


def of_random(table, d):
    p, x = tensors(d["vars"]), tensor(d["pictures"])
    widths(table, "random features", p, "random", [16, 32, 64, 64])  # of 21 rows
    for name, w in p.items():
        if name.endswith("weight"):
            spread(table, name, w)
    f = torch.cat(convolutions(p, "random", x, 0.2), 1)
    table.add("random features", "features", f.numel(), bars.relative(flat(d["features"], f), f), "features")


def spread(table, name, w):
    """He's weights: mean 0 and variance 2/fan-in, to five standard errors."""
    sd, n = (2 / w[0].numel()) ** 0.5, w.numel()
    if abs(float(w.mean())) > 5 * sd / n**0.5 or abs(float((w**2).mean()) / sd**2 - 1) > 5 * (2 / n) ** 0.5:
        table.fail("random features", f"{name} has mean {float(w.mean()):.3g} and standard deviation {float(w.std()):.3g}, want 0 and {sd:.3g}")


def logits(p, x):
    f = convolutions(p, "classifier", x, 0.1)[-1]
    return f, F.linear(f, p["head.weight"], p["head.bias"])


def of_classifier(table, d):
    x, labels = tensor(d["pictures"]), torch.tensor(d["labels"])
    first = tensors(d["runs"][0]["vars"])
    widths(table, "classifier", first, "classifier", [32, 64])  # of 8 rows
    for run in d["runs"][1:]:
        lesson(table, first, x, labels, d["seed"], run)
    f, l = logits(tensors(d["vars"]), x)
    add(table, "classifier", {"features": {"x": d["features"], "shape": list(f.shape)}, "classes": {"x": d["classes"], "shape": list(l.shape)}},
        {"features": f, "classes": l.softmax(1)})


class Lesson:
    """What compare_weight is told of a training."""

    def __init__(self, rate):
        self.rate, self.out = rate, {}


def lesson(table, first, x, labels, seed, run):
    """Adam on cross-entropy from the first weights on; from three quarters on, at a tenth of the rate."""
    p = {k: nn.Parameter(v.clone()) for k, v in first.items()}
    opt, steps = torch.optim.Adam(p.values(), lr=1e-3), len(run["losses"])
    for step, told in enumerate(run["losses"]):
        opt.param_groups[0]["lr"] = 1e-3 if step < 0.75 * steps else 1e-4
        loss = F.cross_entropy(logits(p, mirrored(x, seed, step))[1], labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        table.add("classifier", "report", 1, abs(told - float(loss)) / max(abs(float(loss)), 1e-2), f"loss {step} of {steps}")
    s = Lesson({k: 1e-3 for k in p})
    for k, v in p.items():
        s.out[f"adam.classifier.{k}.v"] = opt.state[v]["exp_avg_sq"]
    for k, a in run["vars"].items():
        bars.compare_weight(table, "classifier", k, tensor(a), p[k].detach(), s)


def mirrored(x, seed, step):
    """Pictures that a draw of their own mirrors."""
    left = [int(philox.blocks(seed, AUGMENT, 0, step, k, 1)[0]) & 1 for k in range(len(x))]
    return torch.stack([a.flip(2) if flip else a for a, flip in zip(x, left)])
