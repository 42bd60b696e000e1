#!/usr/bin/python3
"""BiDSM on the GRBM of the Frey faces (560 visible, 400 hidden): K = 5 lower steps, N = 5 unrolled differentiable Adam steps,
one step on theta through them. PyTorch's double backward; the same computation as workload.GRBM, number for number.
   ./grbm_bidsm.py --batch 100 --threads 2"""
import harness
from harness import parse, torch_for, measure, golden, wave, Adam


class Peer(harness.Peer):
    names = ["upper", "lower"]
    state = "theta", "phi", "tm", "tv", "pm", "pv"

    def __init__(self, torch, batch, visible=560, hidden=400, k=5, n=5, sigma=0.3, temp=0.1, lr=2e-4, source=None):
        self.torch, self.batch, self.K, self.N, self.sigma, self.temp = torch, batch, k, n, sigma, temp
        self.visible, self.hidden, self.adam = visible, hidden, Adam(torch, lr)
        u = lambda fan, *s: (2 * torch.rand(*s) - 1) / fan ** 0.5
        self.theta = [torch.zeros(visible), u(hidden, visible, hidden), u(hidden, visible), u(hidden, hidden)]   # s W b c
        self.phi = [u(visible, hidden, visible), u(visible, hidden)]                                              # L a
        self.pool = torch.rand(4 * batch, visible)
        self.source = source
        self.reset()

    def reset(self):
        z = self.torch.zeros_like
        self.tm, self.tv = [z(p) for p in self.theta], [z(p) for p in self.theta]
        self.pm, self.pv = [z(p) for p in self.phi], [z(p) for p in self.phi]

    def noise(self, number):
        torch = self.torch
        if self.source:
            return self.source(number)
        return torch.randn(self.batch, self.visible), torch.rand(self.batch, self.hidden).clamp_(1e-7, 1 - 1e-7)

    def sample(self, v, draw):
        eps, u = draw
        return v + self.sigma * eps, eps, self.torch.log(u) - self.torch.log1p(-u)

    def hiddens(self, phi, v, logistic):
        return self.torch.sigmoid((self.torch.addmm(phi[1], v, phi[0].t()) + logistic) / self.temp)

    def bound(self, theta, phi, v, h):
        s, w, b, c = theta
        energy = ((v - b) ** 2 * (0.5 * (-2 * s).exp())).sum() - (h * c).sum() - ((v @ w) * h).sum()
        l = self.torch.addmm(phi[1], v, phi[0].t())
        return energy + (h * l - self.torch.nn.functional.softplus(l)).sum()

    def lower(self, theta, phi, v, draw):
        vn, _, logistic = self.sample(v, draw)
        return self.bound(theta, phi, vn, self.hiddens(phi, vn, logistic)) / self.batch

    def step(self, it, v=None):
        if v is None:
            v = self.pool[self.torch.randint(0, len(self.pool), (self.batch,))]
        first = self.K * it + 1
        rates = [self.adam.rates(t) for t in (*range(first, first + self.K + self.N), it + 1)]
        return self.run(rates, v, [self.noise(i) for i in range(self.K + self.N + 1)])

    def update(self, rates, v, draws):
        torch, grad = self.torch, self.torch.autograd.grad
        for i in range(self.K):
            for p in self.phi:
                p.requires_grad_(True)
            low = self.lower(self.theta, self.phi, v, draws[i])
            g = grad(low, self.phi)
            for p in self.phi:
                p.requires_grad_(False)
            self.adam.step_(self.phi, self.pm, self.pv, g, rates[i])
        for p in self.theta:
            p.requires_grad_(True)
        phi, m, s = [p.detach().clone().requires_grad_(True) for p in self.phi], list(self.pm), list(self.pv)
        for i in range(self.N):
            g = grad(self.lower(self.theta, phi, v, draws[self.K + i]), phi, create_graph=True)
            phi, m, s = self.adam.step(phi, m, s, g, rates[self.K + i])
        vn, eps, logistic = self.sample(v, draws[-1])
        h = self.hiddens(phi, vn, logistic)
        ve = vn.detach().requires_grad_(True)
        score = grad(-self.bound(self.theta, phi, ve, h), ve, create_graph=True)[0]
        up = 0.5 * ((score + eps / self.sigma) ** 2).sum() / self.batch
        g = grad(up, self.theta)
        for p in self.theta:
            p.requires_grad_(False)
        self.adam.step_(self.theta, self.tm, self.tv, g, rates[-1])
        return up, low


def main():
    a = parse(__doc__, 100)
    torch = torch_for(a)
    if not a.golden:
        return measure(a, "grbm_bidsm_step", "grbm-bidsm", Peer(torch, a.batch))
    b, nv, nh = 6, 6, 4
    torch.set_default_dtype(torch.float64)
    p = Peer(torch, b, nv, nh, k=2, n=3, lr=0.01, source=lambda n: (1.2 * wave(torch, (b, nv), 1000 * p.it + 2 * n + 100), 0.5 + 0.45 * wave(torch, (b, nh), 1000 * p.it + 2 * n + 101)))
    names = ["model.s", "model.w", "model.b", "model.c", "posterior.weight", "posterior.bias"]
    vals = [0.4 * wave(torch, q.shape, i) for i, q in enumerate(p.theta + p.phi)]
    p.theta, p.phi = vals[:4], vals[4:]
    p.reset()
    if a.compile:
        p.compile(a.compile)
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, 0.5 + 0.4 * wave(torch, (b, nv), 50 + it)))
    golden(a, "two steps of workload.GRBM{Visible: 6, Hidden: 4, Lower: 2, Unroll: 3, Sigma: 0.3, Temperature: 0.1, LR: 0.01}, batch 6, by peers/grbm_bidsm.py --golden, torch " + torch.__version__,
           losses, dict(zip(names, p.theta + p.phi)))


if __name__ == "__main__":
    main()
