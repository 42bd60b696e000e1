#!/usr/bin/python3
"""BiDVL's step as one compiled graph [ALGORITHMS.md §1.2, §1.3]: the step of bidvl_ddp.py on one process, with the networks and the lower loss of the bidvl_models.py beside it.
   ./bidvl_graph.py PATH/TO/bidvl --model conv32 --loss kl --batch 64 --threads 2 --channels-last --compile default"""
import contextlib, sys
import harness
from harness import parse, torch_for, measure, Adam


class Peer(harness.Peer):
    names = ["upper", "lower"]
    state = "weights", "moments"

    def __init__(self, torch, batch, model, ch=64, loss="hinge", r=0.1, deconv="onednn", bf16=False, channels_last=False):
        from bidvl_models import build, SpecLower
        conv = model.startswith("conv")
        self.torch, self.batch, self.loss, self.bf16, self.cl, self.nz, self.adam = torch, batch, loss, bf16, channels_last, 100 if conv else 128, Adam(torch, 1e-4, (0.0, 0.9))
        self.ebm, self.infer, self.gen, size = build(model, ch, self.nz, deconv)
        self.gen.cl = channels_last
        for net in (self.ebm, self.infer, self.gen):
            net.train()
            if channels_last:
                net.to(memory_format=torch.channels_last)
        self.lower = SpecLower(self.infer, self.gen, r, 1.0 / self.nz if conv else 1e-4)
        self.moments = [[torch.zeros_like(w) for w in self.learnt(n)] for n in ("ebm", "lower") for _ in "mv"]
        self.weights = {k: w.detach() for k, w in self.weights.items()}  # tensors, which a graph can take the place of
        pool = torch.nn.functional.interpolate(torch.rand(4 * batch, 3, 8, 8), size=(size, size), mode="bilinear")
        self.pool = (pool * 255).to(torch.uint8)

    def places(self):
        """Where the networks keep their parameters, running statistics and singular vectors: name -> (dict, key)."""
        for net in ("ebm", "infer", "gen"):
            for path, module in getattr(self, net).named_modules():
                for held in (module._parameters, module._buffers):
                    for key, w in held.items():
                        if w is not None:
                            yield "%s.%s.%s" % (net, path, key), held, key

    @property
    def weights(self):
        return {name: held[key] for name, held, key in self.places()}

    @weights.setter
    def weights(self, values):
        for name, held, key in list(self.places()):
            held[key] = values[name]

    def learnt(self, net):
        return [w for module in getattr(self, net).modules() for w in module._parameters.values() if w is not None]

    def amp(self):
        """A graph has no use for the cache of casts: equal ones are made once."""
        return self.torch.autocast("cpu", dtype=self.torch.bfloat16, cache_enabled=not self.graph) if self.bf16 else contextlib.nullcontext()

    def step(self, it):
        x = self.pool[self.torch.randint(0, len(self.pool), (self.batch,))].to(self.torch.get_default_dtype()).div_(127.5).sub_(1.0)
        x = x.contiguous(memory_format=self.torch.channels_last) if self.cl else x
        return self.run([self.adam.rates(it + 1)], x, *(self.torch.randn(self.batch, self.nz) for _ in range(3)))

    def learn(self, net, loss, m, v, rates):
        """One step of Adam on net's weights, which require gradients since loss was made."""
        weights = self.learnt(net)
        g = self.torch.autograd.grad(loss, weights)
        for w in weights:
            w.requires_grad_(False)
        self.adam.step_(weights, m, v, g, rates)

    def update(self, rates, x, h, eps, z):
        for w in self.learnt("ebm"):
            w.requires_grad_(True)
        with self.amp():
            with self.torch.no_grad():
                xg = self.gen(z)
            real, fake = self.ebm(self.torch.cat([x, xg.to(x.dtype)])).to(x.dtype).split(self.batch)
        hinge = lambda e: self.torch.nn.functional.relu(1 + e).mean()
        upper = hinge(real) + hinge(-fake) if self.loss == "hinge" else real.mean() - fake.mean()
        m, v, lm, lv = self.moments
        self.learn("ebm", upper, m, v, rates[0])
        for w in self.learnt("lower"):
            w.requires_grad_(True)
        with self.amp():
            lower = self.lower(x, h, eps, self.ebm)[0]
        self.learn("lower", lower, lm, lv, rates[0])
        return upper, lower


def flags(p):
    p.add_argument("folder", help="of bidvl_models.py")
    p.add_argument("--model", default="conv32", choices=("conv32", "conv64", "resnet32", "resnet128"))
    p.add_argument("--ch", type=int, default=64)
    p.add_argument("--loss", default="hinge", choices=("hinge", "kl"))
    p.add_argument("--bf16", action="store_true", help="autocast")
    p.add_argument("--deconv", default="onednn", choices=("onednn", "torch"), help="transposed convolutions as gradients of convolutions, or torch's own")


def main():
    a = parse(__doc__, 64, flags)
    sys.path.insert(0, a.folder)
    torch = torch_for(a)
    peer = Peer(torch, a.batch, a.model, a.ch, a.loss, deconv=a.deconv, bf16=a.bf16, channels_last=a.channels_last)
    measure(a, "bidvl_step", a.model, peer, ch=a.ch, loss=a.loss, bf16=a.bf16, deconv=a.deconv)


if __name__ == "__main__":
    main()
