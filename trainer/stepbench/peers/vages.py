#!/usr/bin/python3
"""VaGES of the deep EBLVM on 32x32 grey pictures, multiscale denoising [ALGORITHMS.md §2.3, §3]: K = 5 steps of Adam on q, three sets of
L = 2 particles, each refined by C = 5 Langevin steps, one step of Adam on the energy; the same computation as --net vages-mnist.
   ./vages.py --batch 100 --threads 2
   ./vages.py --form 2        the covariance as published, a product of two copies of log p, in the place of slopes along z"""
import math
import harness
from harness import parse, torch_for, measure, golden, wave, Adam


def shapes(size, channels, width, depth, latent, wide):
    """Name -> (shape, fan in) of the energy and of q, in order."""
    model, q = {}, {}

    def conv(to, name, i, o, k, bias=True):
        to[name + ".weight"] = ((o, i, k, k), i * k * k)
        if bias:
            to[name + ".bias"] = ((o,), i * k * k)

    def linear(to, name, i, o):
        to[name + ".weight"] = ((o, i), i); to[name + ".bias"] = ((o,), i)
    conv(model, "model.conv", channels, width, 3)
    for l, n in enumerate((1, 2, 4)):
        for b in range(depth):
            p, i, o = "model.level%d.block%d." % (l + 1, b + 1), (n if b == 0 else 2 * n) * width, 2 * n * width
            conv(model, p + "conv1", i, i, 3, False); conv(model, p + "conv2", i, o, 3); conv(model, p + "shortcut", i, o, 1)
    flat = (size // 8) ** 2
    linear(model, "model.features", flat * 8 * width, latent); linear(model, "model.head", 2 * latent, flat * 4 * width)
    for l, (i, o) in enumerate([(channels, wide), (wide, 2 * wide), (2 * wide, 4 * wide)]):
        conv(q, "posterior.conv%d" % (l + 1), i, o, 3)
    linear(q, "posterior.mean", flat * 4 * wide, latent); linear(q, "posterior.logstd", flat * 4 * wide, latent)
    return model, q


class Peer(harness.Peer):
    names = ["upper", "lower"]
    state = "theta", "phi", "tm", "tv", "pm", "pv", "sigma"

    def __init__(self, torch, batch, size=32, channels=1, width=8, depth=2, latent=50, wide=8, k=5, particles=2, refine=5, rate=1e-2, cool=1e-4, lr=1e-4, form=3, channels_last=False, source=None):
        self.torch, self.batch, self.depth, self.latent, self.K, self.L, self.C, self.rate, self.cool, self.form = torch, batch, depth, latent, k, particles, refine, rate, cool, form
        self.adam, self.source, self.cl, self.sigma0 = Adam(torch, lr), source, channels_last, 0.1
        self.theta, self.phi = ({n: (2 * torch.rand(*sh) - 1) / fan ** 0.5 for n, (sh, fan) in net.items()} for net in shapes(size, channels, width, depth, latent, wide))
        self.pool = torch.nn.functional.interpolate(torch.rand(4 * batch, channels, 8, 8), size=(size, size), mode="bilinear", align_corners=False)
        self.sigma = torch.exp(torch.linspace(math.log(0.1), math.log(3.0), batch, dtype=torch.float64)).to(self.pool.dtype)   # of each place in the batch
        self.reset()

    def reset(self):
        """Begins with the weights as they are."""
        zeros = lambda net: [self.torch.zeros_like(w) for w in net.values()]
        self.theta, self.phi = ({n: self.layout(w) for n, w in net.items()} for net in (self.theta, self.phi))
        self.tm, self.tv, self.pm, self.pv = zeros(self.theta), zeros(self.theta), zeros(self.phi), zeros(self.phi)

    def layout(self, x):
        return x.contiguous(memory_format=self.torch.channels_last) if self.cl and x.dim() == 4 else x

    def features(self, w, v):
        """g1: what E knows of v, (B, latent)."""
        F = self.torch.nn.functional
        x = F.conv2d(v, w["model.conv.weight"], w["model.conv.bias"], padding=1)
        for l in (1, 2, 3):
            for b in range(1, self.depth + 1):
                p = "model.level%d.block%d." % (l, b)
                y = F.conv2d(F.elu(x), w[p + "conv1.weight"], None, padding=1)
                y = F.conv2d(F.elu(y), w[p + "conv2.weight"], w[p + "conv2.bias"], padding=1)
                if b == 1:
                    x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
                x = y + F.conv2d(x, w[p + "shortcut.weight"], w[p + "shortcut.bias"])
        return F.linear(x.flatten(1), w["model.features.weight"], w["model.features.bias"])

    def energy(self, w, f, h):
        """E, (B, n), of features (B, latent) and n latents of each, (B, n, latent)."""
        F = self.torch.nn.functional
        both = self.torch.cat([f[:, None] + h, h], -1)
        return F.elu(F.linear(both, w["model.head.weight"], w["model.head.bias"])).square().sum(-1)

    def infer(self, w, v):
        """Mean and log standard deviation of q(h|v)."""
        F, x = self.torch.nn.functional, v
        for l in (1, 2, 3):
            x = F.leaky_relu(F.conv2d(x, w["posterior.conv%d.weight" % l], w["posterior.conv%d.bias" % l], stride=2, padding=1), 0.2)
        x = x.flatten(1)
        return F.linear(x, w["posterior.mean.weight"], w["posterior.mean.bias"]), F.linear(x, w["posterior.logstd.weight"], w["posterior.logstd.bias"])

    def noise(self, kind, place, i, *shape):
        return self.source(kind, place, i, shape) if self.source else self.torch.randn(*shape)

    def draws(self, v):
        """The noise of a step: what blurs v and where latents begin, of the upper level (place 0, and sets 0 to 2) and of each lower step (3, 4, …), and what moves the particles."""
        one, many = (self.batch, self.latent), (self.batch, self.L, self.latent)
        upper, lower = range(3), range(3, 3 + self.K)
        blur = {place: self.layout(self.noise("blur", place, 0, *v.shape)) for place in [0, *lower]}
        latent = {**{place: self.noise("latent", place, 0, *one) for place in lower}, **{s: self.noise("latent", s, 0, *many) for s in upper}}
        return blur, latent, [[self.noise("refine", s, i, *many) for s in upper] for i in range(self.C)]

    def blurred(self, v, eps):
        return v + self.sigma[:, None, None, None] * eps, eps

    def lower(self, v, blur, latent):
        """One step of q: half the squared slope of log p - log q at a sample, over sigma."""
        torch, grad = self.torch, self.torch.autograd.grad
        v, _ = self.blurred(v, blur)
        with torch.no_grad():
            f = self.features(self.theta, v)
        for w in self.phi.values():
            w.requires_grad_(True)
        mean, logstd = self.infer(self.phi, v)
        h = mean + logstd.exp() * latent
        e = self.energy(self.theta, f, h[:, None]).sum()
        slope = -grad(e, h, create_graph=True)[0] + (h - mean) * (-2 * logstd).exp()
        loss = (0.5 * slope.square().sum(1) / self.sigma).mean()
        g = grad(loss, list(self.phi.values()))
        for w in self.phi.values():
            w.requires_grad_(False)
        return loss, g

    def particles(self, f, mean, logstd, latent, refine):
        """Three sets of L, (3, B, L, latent), carried towards p(h|v)."""
        torch, L = self.torch, self.L
        eps = torch.cat([latent[s] for s in range(3)], 1)
        h = mean[:, None] + logstd.exp()[:, None] * eps
        for i in range(self.C):
            h.requires_grad_(True)
            slope = torch.autograd.grad(self.energy(self.theta, f, h).sum(), h)[0]
            xi = torch.cat(refine[i], 1)
            with torch.no_grad():
                h = h - 0.5 * self.rate * slope + self.cool * xi
        return h.detach().split(L, 1)

    def upper(self, v, blur, latent, refine):
        torch, grad = self.torch, self.torch.autograd.grad
        v, eps = self.blurred(v, blur[0])
        with torch.no_grad():
            mean, logstd = self.infer(self.phi, v)
        v.requires_grad_(True)
        still = {n: w.detach() for n, w in self.theta.items()}              # not the tensors that are learnt below: what saved them would learn too
        f = self.features(still, v)
        h1, h2, h3 = self.particles(f.detach(), mean, logstd, latent, refine)
        sigma = self.sigma[:, None, None, None]
        score = -grad(self.energy(still, f, h1).mean(1).sum(), v, retain_graph=True)[0]
        miss = score / sigma + eps / self.sigma0 ** 2
        z, loss = miss / sigma, 0.5 * miss.square().sum() / self.batch
        if self.form == 3:                                                  # slopes of particles along z: f moves by J·z
            u = torch.zeros_like(f, requires_grad=True)
            df = grad(grad(f, v, u, create_graph=True)[0], u, z)[0]
            g = f.detach()[:, None].repeat(1, self.L, 1).requires_grad_(True)
            a = -(grad(self.pairs(g, h3).sum(), g)[0] * df[:, None]).sum(-1)
        for w in self.theta.values():
            w.requires_grad_(True)
        fw = self.features(self.theta, v)
        s = -grad(self.energy(self.theta, fw, h2).mean(1).sum(), v, create_graph=True)[0]
        surrogate = (z * s).sum()
        if self.form == 3:
            surrogate = surrogate + ((a - a.mean(1, keepdim=True)) * -self.energy(self.theta, fw, h3)).sum() / (self.L - 1)
        else:
            A = -self.energy(still, f, h3)
            B = -self.energy(self.theta, self.features(self.theta, v.detach()), h3)
            both = (z * grad((A * B).mean(1).sum(), v, create_graph=True)[0]).sum()
            apart = ((z * grad(A.mean(1).sum(), v)[0]).flatten(1).sum(1) * B.mean(1)).sum()
            surrogate = surrogate + (both - apart) * self.L / (self.L - 1)
        g = grad(surrogate / self.batch, list(self.theta.values()))
        for w in self.theta.values():
            w.requires_grad_(False)
        return loss, g

    def pairs(self, f, h):
        """E of features (B, n, latent), each with its own latent."""
        F, w = self.torch.nn.functional, self.theta
        both = self.torch.cat([f + h, h], -1)
        return F.elu(F.linear(both, w["model.head.weight"], w["model.head.bias"])).square().sum(-1)

    def step(self, it, v=None):
        if v is None:
            v = self.layout(self.pool[self.torch.randint(0, len(self.pool), (self.batch,))])
        return self.run([self.adam.rates(t) for t in (*range(self.K * it + 1, self.K * (it + 1) + 1), it + 1)], v, self.draws(v))

    def update(self, rates, v, draws):
        blur, latent, refine = draws
        for i in range(self.K):
            low, g = self.lower(v, blur[3 + i], latent[3 + i])
            self.adam.step_(list(self.phi.values()), self.pm, self.pv, g, rates[i])
        up, g = self.upper(v, blur, latent, refine)
        self.adam.step_(list(self.theta.values()), self.tm, self.tv, g, rates[-1])
        return up, low


def main():
    a = parse(__doc__, 100, lambda p: p.add_argument("--form", type=int, default=3, choices=(2, 3), help="of the covariance's surrogate"))
    torch = torch_for(a)
    if not a.golden:
        return measure(a, "vages_mnist_step", "vages-mnist", Peer(torch, a.batch, width=a.width or 8, form=a.form, channels_last=a.channels_last), form=a.form)
    b = 4
    torch.set_default_dtype(torch.float64)
    at = {"blur": 0, "latent": 20, "refine": 40}
    p = Peer(torch, b, 8, 1, 1, 2, 3, 1, k=2, refine=2, cool=0.1, lr=0.01, form=a.form, source=lambda kind, place, i, shape: 1.2 * wave(torch, shape, 1000 * p.it + 100 + at[kind] + 10 * place + i))
    for k, (net, name) in enumerate([(p.theta, n) for n in p.theta] + [(p.phi, n) for n in p.phi]):
        net[name] = 0.4 * wave(torch, net[name].shape, k)
    p.reset()
    if a.compile:
        p.compile(a.compile)
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, 0.5 + 0.4 * wave(torch, (b, 1, 8, 8), 50 + it)))
    golden(a, "two steps of VaGES by form %d on the EBLVM of width 1, 2 blocks a level, 3 latents, q of width 1, 8x8 grey pictures, K = L = C = 2, alpha 0.01, tau 0.1, rates 0.01, batch 4, by peers/vages.py --golden, torch %s" % (a.form, torch.__version__),
           losses, {**p.theta, **p.phi})


if __name__ == "__main__":
    main()
