"""A step as one graph of ATen's operations, compiled by inductor (torch.compile's compiler, C++ on a CPU); torch >= 2.6.

torch.compile of a function that is differentiated twice ends with "torch.compile with aot_autograd does not currently support double backward".
So what it would get is made here: make_fx runs the function once on tensors without numbers and writes down what lies below autograd, forward, gradients and
gradients of gradients, as operations of one graph, in which nothing is left to differentiate.
   graph.py PROGRAM ARGUMENTS        runs a program that compiles by itself, with vector code (see vectors)"""
import ast, ctypes, os, sys, time

MODES = {"default": {}, "max-autotune": {"max_autotune": True, "coordinate_descent_tuning": True}}


def options(mode):
    """inductor's options: those of a mode of torch.compile, or as they are written, NAME=VALUE,NAME=VALUE,…"""
    if mode in MODES:
        return MODES[mode]
    return {name: ast.literal_eval(value) for name, value in (each.split("=", 1) for each in mode.split(","))}


def vectors():
    """The vector instructions that inductor writes, as "avx512". Without a word it writes scalar code, half as fast as eager, where its trial of them fails.
    Debian's does: the trial, like every kernel, calls libsleef, which other builds of torch have within and Debian's only links to."""
    try:
        ctypes.CDLL("libsleef.so.3", mode=ctypes.RTLD_GLOBAL)        # for kernels
        os.environ["LD_PRELOAD"] = "libsleef.so.3"                   # for the trial, which is another process
    except OSError:
        pass                                                         # a build with its own
    from torch._inductor import cpu_vec_isa
    isa = cpu_vec_isa.pick_vec_isa()
    if not isa:
        raise SystemExit("inductor finds no vector instructions that it can use, so its kernels would be scalar: apt-get install g++ python3-dev libtorch-dev libsleef-dev")
    return str(isa)


class Graph:
    """peer.method(*args) compiled at its first call. fields names peer's attributes that it reads or updates in place: lists or dicts of tensors, or tensors.
    Everything else is a constant of the graph: no argument may be a number that changes, and no noise may be drawn within."""
    seconds = 0.0                                                    # what tracing and compiling all graphs took

    def __init__(self, torch, mode, peer, fields, method):
        self.torch, self.mode, self.peer, self.fields, self.method, self.run = torch, mode, peer, fields, method, None

    def __call__(self, *args):
        pytree = self.torch.utils._pytree
        flat, form = pytree.tree_flatten(([getattr(self.peer, n) for n in self.fields], args))
        if self.run is None:
            t = time.perf_counter()
            self.build(flat, form)
            Graph.seconds += time.perf_counter() - t
        with self.torch.no_grad():
            return pytree.tree_unflatten(self.run(*flat), self.out)

    def build(self, flat, form):
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch._dynamo.utils import get_metrics_context
        import torch._inductor
        torch, pytree = self.torch, self.torch.utils._pytree

        def f(*flat):
            values, args = pytree.tree_unflatten([x.detach() for x in flat], form)
            kept = [getattr(self.peer, n) for n in self.fields]
            try:
                for n, v in zip(self.fields, values):
                    setattr(self.peer, n, v)
                out, self.out = pytree.tree_flatten(self.method(*args))
            finally:
                for n, v in zip(self.fields, kept):
                    setattr(self.peer, n, v)
            return [x.detach() for x in out]
        graph = make_fx(f, tracing_mode="fake", _allow_non_fake_inputs=True)(*flat)
        # The context is what torch.compile counts its own doings in: torch 2.6 fails without one when it finds the graph in the cache of an earlier run.
        with torch.no_grad(), get_metrics_context():
            self.run = torch._inductor.compile(graph, flat, options=options(self.mode))


if __name__ == "__main__":
    vectors()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
