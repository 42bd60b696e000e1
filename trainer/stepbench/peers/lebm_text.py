#!/usr/bin/python3
"""The latent-space energy-based prior on sentences of 20 tokens [ALGORITHMS.md §4, Text]: an LSTM with the latent at every word and in its
first state, K0 = 60 Langevin steps of the prior, K1 = 20 of the posterior, one step of Adam on each network; the same computation as --net lebm-text.
   ./lebm_text.py --batch 32 --threads 2"""
import lebm
from harness import parse, torch_for, measure, golden, wave

PAD, BEGIN, END, RESERVED = 0, 1, 2, 4


class Peer(lebm.Peer):
    together = {"prior": 10, "posterior": 2}

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

    def kept(self, use, *shape):
        """What dropout multiplies (T, B, n) numbers by."""
        if self.source:
            return (self.source("dropout", use, shape) > self.dropout) / (1 - self.dropout)
        return self.torch.empty(shape).bernoulli_(1 - self.dropout).div_(1 - self.dropout)

    def embedded(self, x):
        """Words that are read, (T, B, embed)."""
        return self.torch.nn.functional.embedding(x[:, :-1].t(), self.g["generator.embedding.weight"])

    def nll(self, x, words, z, kept=None):
        """-log p(x|z) of each sentence, (B); words are what embedded gives, kept what dropout multiplies those and the units by."""
        F, g = self.torch.nn.functional, self.g
        if kept:
            words = words * kept[0]
        h0 = F.linear(z, g["generator.first.weight"], g["generator.first.bias"])
        h = (self.cells if self.graph else self.lstm)(words, z, h0)
        if kept:
            h = h * kept[1]
        logits = F.linear(h.flatten(0, 1), g["generator.out.weight"], g["generator.out.bias"])
        each = F.cross_entropy(logits, x[:, 1:].t().flatten(), ignore_index=PAD, reduction="none")
        return each.view(len(words), -1).sum(0)

    def lstm(self, words, z, h):
        """torch's own: h of every word, (T, B, hidden)."""
        torch, g = self.torch, self.g
        read = torch.cat([words, z.expand(len(words), *z.shape)], -1)
        weights = [g["generator.lstm.weight_ih"], g["generator.lstm.weight_hh"], g["generator.lstm.bias"], self.zero]
        return torch._VF.lstm(read, (h[None], torch.zeros_like(h)[None]), weights, True, 1, 0.0, False, False, False)[0]

    def cells(self, words, z, h):
        """The same, in operations that a compiler can fuse, with z's product made once."""
        torch, g, c, out = self.torch, self.g, self.torch.zeros_like(h), []
        of_words, of_z = g["generator.lstm.weight_ih"].split([words.shape[-1], z.shape[-1]], 1)
        read = (words.flatten(0, 1) @ of_words.t()).view(*words.shape[:2], -1) + torch.addmm(g["generator.lstm.bias"], z, of_z.t())
        for x in read:
            i, f, n, o = (x + h @ g["generator.lstm.weight_hh"].t()).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * n.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out)

    def posterior(self, z, x, words):
        return self.nll(x, words, z).sum() + self.prior(z)

    def step(self, it, x=None):
        if x is None:
            x = self.pool[self.torch.randint(0, len(self.pool), (self.batch,))]
        minus, plus = self.chain("prior", self.K0, self.walk_prior), self.chain("posterior", self.K1, self.walk_posterior, x, self.embedded(x))
        size = x.shape[1] - 1, len(x)
        kept = [self.kept(0, *size, self.g["generator.embedding.weight"].shape[1]), self.kept(1, *size, self.g["generator.first.bias"].shape[0])]
        return self.run([self.adam_g.rates(it + 1), self.adam_e.rates(it + 1)], x, minus, plus, kept)

    def loss_g(self, x, plus, kept):
        return self.nll(x, self.embedded(x), plus, kept).mean()

    def clipped(self, g):
        norm = self.torch.stack([x.norm() for x in g]).norm()
        by = (self.clip / (norm + 1e-6)).clamp(max=1.0)
        return [x * by for x in g]


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
    if a.compile:
        p.compile(a.compile)
    x = torch.tensor([[1, 4, 5, 2, 0, 0], [1, 6, 3, 5, 4, 2], [1, 5, 2, 0, 0, 0], [1, 4, 6, 6, 2, 0]])
    losses = []
    for it in range(2):
        p.it = it
        losses.append(p.step(it, x.flip(0) if it else x))
    golden(a, "two steps of the latent-space prior of sentences, 7 words, embeddings of 3, 4 units, nef 4, 2 latents, K0 = 3, K1 = 2, clipped at 0.5, rates 0.01 of G and 0.02 of E, batch 4, by peers/lebm_text.py --golden, torch " + torch.__version__,
           losses, {**p.g, **p.e})


if __name__ == "__main__":
    main()
