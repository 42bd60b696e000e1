#!/usr/bin/python3
"""The latent-space energy-based prior on 32x32 pictures, CIFAR-10's generator [ALGORITHMS.md §4]: K0 = 60 Langevin steps of the prior,
K1 = 20 of the posterior, one step of Adam on the generator and one on the energy; the same computation as --net lebm-pictures.
   ./lebm.py --batch 100 --threads 2"""
import harness
from graph import Graph
from harness import parse, torch_for, measure, golden, wave, Adam


def generator(ngf, latent, channels):
    """T8/1/0 -> 8·ngf; T4/2/1 -> 4·ngf; T4/2/1 -> 2·ngf; T3/1/1 -> channels: (in, out, kernel, stride, padding) of each."""
    return [(latent, 8 * ngf, 8, 1, 0), (8 * ngf, 4 * ngf, 4, 2, 1), (4 * ngf, 2 * ngf, 4, 2, 1), (2 * ngf, channels, 3, 1, 1)]


class Peer(harness.Peer):
    names = ["recon", "energy"]
    state = "g", "e", "gm", "gv", "em", "ev"
    together = {"prior": 10, "posterior": 5}                         # Langevin steps in one graph, which divide those of a chain; all of them compile for minutes

    def __init__(self, torch, batch, ngf=16, latent=128, nef=200, channels=3, k0=60, k1=20, lr_g=1e-4, lr_e=2e-5, channels_last=False, source=None):
        self.torch, self.batch, self.latent, self.K0, self.K1, self.s0, self.s1, self.sigma = torch, batch, latent, k0, k1, 0.4, 0.1, 0.3
        self.layers, self.channels, self.cl, self.lr_g, self.lr_e, self.source = generator(ngf, latent, channels), channels, channels_last, lr_g, lr_e, source
        self.beta = (0.5, 0.999)
        self.g, self.e = {}, {}
        for n, (i, o, k, _, _) in enumerate(self.layers):
            w = torch.nn.init.xavier_normal_(torch.empty(i, o, k, k))
            self.g["generator.conv%d.weight" % (n + 1)] = w
            self.g["generator.conv%d.bias" % (n + 1)] = (2 * torch.rand(o) - 1) / (o * k * k) ** 0.5
        for n, (i, o) in enumerate([(latent, nef), (nef, nef), (nef, 1)]):
            self.e["energy.linear%d.weight" % (n + 1)] = torch.nn.init.xavier_normal_(torch.empty(o, i))
            self.e["energy.linear%d.bias" % (n + 1)] = (2 * torch.rand(o) - 1) / i ** 0.5
        self.pool = 2 * torch.nn.functional.interpolate(torch.rand(4 * batch, channels, 8, 8), size=(32, 32), mode="bilinear", align_corners=False) - 1
        self.reset()

    def reset(self):
        """Begins with the weights as they are."""
        layout = lambda w: w.contiguous(memory_format=self.torch.channels_last) if self.cl and w.dim() == 4 else w
        self.g = {k: layout(w.detach()) for k, w in self.g.items()}
        zeros = lambda net: [self.torch.zeros_like(w) for w in net.values()]
        self.gm, self.gv, self.em, self.ev = zeros(self.g), zeros(self.g), zeros(self.e), zeros(self.e)
        self.adam_g, self.adam_e = Adam(self.torch, self.lr_g, self.beta), Adam(self.torch, self.lr_e, self.beta)

    def decode(self, z):
        F, w = self.torch.nn.functional, self.g["generator.conv1.weight"]
        # A transposed convolution of a 1x1 map is a product, which takes torch a tenth of the time.
        x = (z @ w.flatten(1)).view(-1, *w.shape[1:]) + self.g["generator.conv1.bias"][:, None, None]
        for n, (_, _, _, s, p) in list(enumerate(self.layers))[1:]:
            x = F.conv_transpose2d(F.leaky_relu(x, 0.1), self.g["generator.conv%d.weight" % (n + 1)], self.g["generator.conv%d.bias" % (n + 1)], stride=s, padding=p)
        return x.tanh()

    def energy(self, z):
        F, e = self.torch.nn.functional, self.e
        z = F.leaky_relu(F.linear(z, e["energy.linear1.weight"], e["energy.linear1.bias"]), 0.2)
        z = F.leaky_relu(F.linear(z, e["energy.linear2.weight"], e["energy.linear2.bias"]), 0.2)
        return F.linear(z, e["energy.linear3.weight"], e["energy.linear3.bias"]).squeeze(1)

    def noise(self, chain, i):
        """What chain begins with (i = 0), and the noise of its step i = 1, 2, …"""
        return self.source(chain, i) if self.source else self.torch.randn(self.batch, self.latent)

    def prior(self, z):
        return self.energy(z).sum() + 0.5 * z.square().sum()

    def posterior(self, z, x):
        return (x - self.decode(z)).square().sum() / (2 * self.sigma ** 2) + self.prior(z)

    def walk_prior(self, z, noise):
        return self.walk(z, noise, self.s0, self.prior)

    def walk_posterior(self, z, noise, *given):
        return self.walk(z, noise, self.s1, lambda z: self.posterior(z, *given))

    def walk(self, z, noise, s, potential):
        """A Langevin step for each of noise."""
        for xi in noise:
            z.requires_grad_(True)
            slope = self.torch.autograd.grad(potential(z), z)[0]
            with self.torch.no_grad():
                z = z - 0.5 * s * s * slope + s * xi
        return z.detach()

    def chain(self, name, steps, walk, *given):
        z, n = self.noise(name, 0), min(steps, self.together[name]) if self.graph else steps
        for i in range(0, steps, n):
            z = walk(z, [self.noise(name, j + 1) for j in range(i, i + n)], *given)
        return z

    def compile(self, mode):
        super().compile(mode)
        self.walk_prior, self.walk_posterior = (Graph(self.torch, mode, self, ("g", "e"), f) for f in (self.walk_prior, self.walk_posterior))

    def learn(self, on):
        for w in list(self.g.values()) + list(self.e.values()):
            w.requires_grad_(on)

    def step(self, it, x=None):
        if x is None:
            x = self.pool[self.torch.randint(0, len(self.pool), (self.batch,))]
            x = x.contiguous(memory_format=self.torch.channels_last) if self.cl else x
        minus, plus = self.chain("prior", self.K0, self.walk_prior), self.chain("posterior", self.K1, self.walk_posterior, x)
        return self.run([self.adam_g.rates(it + 1), self.adam_e.rates(it + 1)], x, minus, plus)

    def loss_g(self, x, plus):
        return (x - self.decode(plus)).square().sum() / self.batch

    def clipped(self, g):
        return g

    def update(self, rates, x, minus, plus, *kept):
        self.learn(True)
        loss_g = self.loss_g(x, plus, *kept)
        g = self.clipped(self.torch.autograd.grad(loss_g, list(self.g.values())))
        loss_e = self.energy(plus).mean() - self.energy(minus).mean()
        e = self.torch.autograd.grad(loss_e, list(self.e.values()))
        self.learn(False)
        self.adam_g.step_(list(self.g.values()), self.gm, self.gv, g, rates[0])
        self.adam_e.step_(list(self.e.values()), self.em, self.ev, e, rates[1])
        return loss_g, loss_e


def main():
    a = parse(__doc__, 100)
    torch = torch_for(a)
    if not a.golden:
        return measure(a, "lebm_pictures_step", "lebm-pictures", Peer(torch, a.batch, ngf=a.width or 16, channels_last=a.channels_last))
    b, latent = 4, 3
    torch.set_default_dtype(torch.float64)
    number = lambda chain, i: 1000 * p.it + 100 + i + {"prior": 0, "posterior": 500}[chain]
    p = Peer(torch, b, ngf=1, latent=latent, nef=4, channels=1, k0=3, k1=2, lr_g=0.01, lr_e=0.02, source=lambda chain, i: 1.2 * wave(torch, (b, latent), number(chain, i)))
    for k, (net, name) in enumerate([(p.g, n) for n in p.g] + [(p.e, n) for n in p.e]):
        net[name] = 0.4 * wave(torch, net[name].shape, k)
    p.reset()
    if a.compile:
        p.compile(a.compile)
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, 0.8 * wave(torch, (b, 1, 32, 32), 50 + it)))
    golden(a, "two steps of the latent-space prior with CIFAR-10's generator, ngf 1, nef 4, 3 latents, grey pictures, K0 = 3, K1 = 2, rates 0.01 of G and 0.02 of E, batch 4, by peers/lebm.py --golden, torch " + torch.__version__,
           losses, {**p.g, **p.e})


if __name__ == "__main__":
    main()
