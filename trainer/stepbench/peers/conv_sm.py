#!/usr/bin/python3
"""Multi-scale denoising score matching of a convolutional ELU energy on 32x32 pictures, PyTorch's double backward; the same
computation as workload.ConvSM, number for number.
   ./conv_sm.py --batch 64 --threads 2 --channels-last"""
import harness
from harness import parse, torch_for, measure, golden, wave, Adam

SIGMA0, LOW, HIGH = 0.1, 0.05, 1.2


def shapes(size, channels, width, features):
    """Name -> (shape, fan in), in order."""
    s = {}

    def conv(name, i, o, k, bias=True):
        s[name + ".weight"] = ((o, i, k, k), i * k * k)
        if bias:
            s[name + ".bias"] = ((o,), i * k * k)

    def linear(name, i, o):
        s[name + ".weight"] = ((o, i), i); s[name + ".bias"] = ((o,), i)
    conv("energy.conv", channels, width, 3)
    for b, n in enumerate((1, 2, 4)):
        p, i, o = "energy.block%d." % (b + 1), n * width, 2 * n * width
        conv(p + "conv1", i, i, 3, False); conv(p + "conv2", i, o, 3); conv(p + "shortcut", i, o, 1)
    flat = (size // 8) ** 2 * 8 * width
    linear("energy.features", flat, features); linear("energy.head", features, flat // 2)
    return s


class Peer(harness.Peer):
    names = ["loss"]
    state = "params", "m", "v", "sigma"

    def __init__(self, torch, batch, size=32, channels=3, width=32, features=50, lr=5e-5, channels_last=False, source=None):
        self.torch, self.batch, self.adam, self.source, self.cl = torch, batch, Adam(torch, lr), source, channels_last
        self.names_p = list(shapes(size, channels, width, features))
        self.params = [self.layout((2 * torch.rand(*sh) - 1) / fan ** 0.5) for sh, fan in shapes(size, channels, width, features).values()]
        self.pool = torch.nn.functional.interpolate(torch.rand(4 * batch, channels, 8, 8), size=(size, size), mode="bilinear", align_corners=False)
        self.sigma = (LOW + (HIGH - LOW) / max(1, batch - 1) * torch.arange(batch, dtype=self.pool.dtype)).reshape(batch, 1, 1, 1)
        self.reset()

    def layout(self, x):
        return x.contiguous(memory_format=self.torch.channels_last) if self.cl and x.dim() == 4 else x

    def reset(self):
        self.m, self.v = [self.torch.zeros_like(p) for p in self.params], [self.torch.zeros_like(p) for p in self.params]

    def energy(self, x):
        F, p = self.torch.nn.functional, dict(zip(self.names_p, self.params))
        x = F.conv2d(x, p["energy.conv.weight"], p["energy.conv.bias"], padding=1)
        for b in (1, 2, 3):
            q = "energy.block%d." % b
            y = F.conv2d(F.elu(x), p[q + "conv1.weight"], None, padding=1)
            y = F.conv2d(F.elu(y), p[q + "conv2.weight"], p[q + "conv2.bias"], padding=1)
            x = F.avg_pool2d(y, 2) + F.conv2d(F.avg_pool2d(x, 2), p[q + "shortcut.weight"], p[q + "shortcut.bias"])
        x = F.linear(x.flatten(1), p["energy.features.weight"], p["energy.features.bias"])
        return F.elu(F.linear(x, p["energy.head.weight"], p["energy.head.bias"])).pow(2).sum()

    def step(self, it, v=None):
        if v is None:
            v = self.layout(self.pool[self.torch.randint(0, len(self.pool), (self.batch,))])
        return self.run([self.adam.rates(it + 1)], v, self.source(v.shape) if self.source else self.torch.randn_like(v))

    def update(self, rates, v, eps):
        torch, grad = self.torch, self.torch.autograd.grad
        for p in self.params:
            p.requires_grad_(True)
        x = (v + self.sigma * eps).requires_grad_(True)
        score = grad(-self.energy(x), x, create_graph=True)[0]
        loss = 0.5 * ((score / self.sigma + eps / SIGMA0 ** 2) ** 2).sum() / self.batch
        g = grad(loss, self.params)
        for p in self.params:
            p.requires_grad_(False)
        self.adam.step_(self.params, self.m, self.v, g, rates[0])
        return [loss]


def main():
    a = parse(__doc__, 64)
    torch = torch_for(a)
    if not a.golden:
        return measure(a, "conv_sm_step", "conv-sm", Peer(torch, a.batch, width=a.width or 32, channels_last=a.channels_last))
    torch.set_default_dtype(torch.float64)
    p = Peer(torch, 4, 8, 2, 2, 3, lr=0.01, source=lambda s: 1.2 * wave(torch, s, 1000 * p.it + 100))
    p.params = [0.4 * wave(torch, q.shape, i) for i, q in enumerate(p.params)]
    p.reset()
    if a.compile:
        p.compile(a.compile)
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, 0.5 + 0.4 * wave(torch, (4, 2, 8, 8), 50 + it)))
    golden(a, "two steps of workload.ConvSM{Size: 8, Channels: 2, Width: 2, Features: 3, LR: 0.01}, batch 4, by peers/conv_sm.py --golden, torch " + torch.__version__,
           losses, dict(zip(p.names_p, p.params)))


if __name__ == "__main__":
    main()
