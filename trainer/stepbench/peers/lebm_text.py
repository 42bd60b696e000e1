#!/usr/bin/python3
"""The latent-space energy-based prior on sentences of 20 tokens [ALGORITHMS.md §4, Text]: an LSTM with the latent at every word and in its
first state, K0 = 60 Langevin steps of the prior, K1 = 20 of the posterior, one step of Adam on each network; the same computation as --net lebm-text.
   ./lebm_text.py --batch 32 --threads 2"""
import lebm
from harness import parse, torch_for, measure, golden, wave

PAD, BEGIN, END, RESERVED = 0, 1, 2, 4


class Peer(lebm.Peer):
    def __init__(self, torch, batch, words=1789, length=20, embed=64, hidden=64, latent=32, nef=200, k0=60, k1=20, lr_g=1e-3, lr_e=2e-5, clip=5.0, source=None):
        self.torch, self.batch, self.latent, self.K0, self.K1, self.s0, self.s1 = torch, batch, latent, k0, k1, 0.4, 0.1
        self.clip, self.lr_g, self.lr_e, self.beta, self.source, self.cl, self.dropout = clip, lr_g, lr_e, (0.9, 0.999), source, False, 0.5
        u = lambda *s: 0.2 * torch.rand(*s) - 0.1
        self.g = {"generator.embedding.weight": u(words, embed),
                  "generator.lstm.weight_ih": u(4 * hidden, embed + latent), "generator.lstm.weight_hh": u(4 * hidden, hidden), "generator.lstm.bias": u(4 * hidden),
                  "generator.out.weight": u(words, hidden), "generator.out.bias": u(words),
                  "generator.first.weight": u(hidden, latent), "generator.first.bias": u(hidden)}
        self.e = {}
        for n, (i, o) in enumerate([(latent, nef), (nef, nef), (nef, 1)]):
            self.e["energy.linear%d.weight" % (n + 1)], self.e["energy.linear%d.bias" % (n + 1)] = u(o, i), u(o)
        self.pool = torch.randint(RESERVED, words, (4 * batch, length))
        self.pool[:, 0], self.pool[:, -1] = BEGIN, END
        self.zero = torch.zeros(4 * hidden)      # nn.LSTM's second bias
        self.reset()

    def dropped(self, x, use):
        """x (T, B, n) with a share left out."""
        if not self.source:
            return self.torch.nn.functional.dropout(x, self.dropout)
        return x * (self.source("dropout", use, x.shape) > self.dropout) / (1 - self.dropout)

    def embedded(self, x):
        """Words that are read, (T, B, embed)."""
        return self.torch.nn.functional.embedding(x[:, :-1].t(), self.g["generator.embedding.weight"])

    def nll(self, x, words, z, dropout):
        """-log p(x|z) of each sentence, (B); words are what embedded gives."""
        torch, F, g = self.torch, self.torch.nn.functional, self.g
        if dropout:
            words = self.dropped(words, 0)
        read = torch.cat([words, z.expand(len(words), *z.shape)], -1)
        h0 = F.linear(z, g["generator.first.weight"], g["generator.first.bias"])[None]
        weights = [g["generator.lstm.weight_ih"], g["generator.lstm.weight_hh"], g["generator.lstm.bias"], self.zero]
        h = torch._VF.lstm(read, (h0, torch.zeros_like(h0)), weights, True, 1, 0.0, False, False, False)[0]
        if dropout:
            h = self.dropped(h, 1)
        logits = F.linear(h.flatten(0, 1), g["generator.out.weight"], g["generator.out.bias"])
        each = F.cross_entropy(logits, x[:, 1:].t().flatten(), ignore_index=PAD, reduction="none")
        return each.view(len(words), -1).sum(0)

    def step(self, it, x=None):
        if x is None:
            x = self.pool[self.torch.randint(0, len(self.pool), (self.batch,))]
        self.learn(False)
        words = self.embedded(x)
        prior = lambda z: self.energy(z).sum() + 0.5 * z.square().sum()
        posterior = lambda z: self.nll(x, words, z, False).sum() + prior(z)
        minus, plus = self.langevin("prior", self.K0, self.s0, prior), self.langevin("posterior", self.K1, self.s1, posterior)
        self.learn(True)
        loss_g = self.nll(x, self.embedded(x), plus, True).mean()
        self.opt_g.zero_grad(set_to_none=True); loss_g.backward()
        self.torch.nn.utils.clip_grad_norm_(self.g.values(), self.clip)
        self.opt_g.step()
        loss_e = self.energy(plus).mean() - self.energy(minus).mean()
        self.opt_e.zero_grad(set_to_none=True); loss_e.backward(); self.opt_e.step()
        return [float(loss_g), float(loss_e)]


def main():
    a = parse(__doc__, 32)
    torch = torch_for(a)
    if not a.golden:
        h = a.width or 64
        return measure(a, "lebm_text_step", "lebm-text", Peer(torch, a.batch, embed=h, hidden=h))
    b, latent, words, length = 4, 2, 7, 6
    torch.set_default_dtype(torch.float64)

    def source(kind, i, shape=None):
        if kind == "dropout":   # of a sentence, all its words'
            t, n, w = shape
            return 0.5 + 0.45 * wave(torch, (n, t, w), 1000 * p.it + 900 + i).transpose(0, 1)
        return 1.2 * wave(torch, (b, latent), 1000 * p.it + 100 + i + {"prior": 0, "posterior": 500}[kind])
    p = Peer(torch, b, words, length, embed=3, hidden=4, latent=latent, nef=4, k0=3, k1=2, lr_g=0.01, lr_e=0.02, clip=0.5, source=source)
    for k, (net, name) in enumerate([(p.g, n) for n in p.g] + [(p.e, n) for n in p.e]):
        net[name] = 0.4 * wave(torch, net[name].shape, k)
    p.reset()
    x = torch.tensor([[1, 4, 5, 2, 0, 0], [1, 6, 3, 5, 4, 2], [1, 5, 2, 0, 0, 0], [1, 4, 6, 6, 2, 0]])
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, x.flip(0) if it else x))
    golden(a, "two steps of the latent-space prior of sentences, 7 words, embeddings of 3, 4 units, nef 4, 2 latents, K0 = 3, K1 = 2, clipped at 0.5, rates 0.01 of G and 0.02 of E, batch 4, by peers/lebm_text.py --golden, torch " + torch.__version__,
           losses, {**p.g, **p.e})


if __name__ == "__main__":
    main()
