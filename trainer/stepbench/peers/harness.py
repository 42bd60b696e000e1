"""What the peers here have in common: settings of the machine, timing, the load of other programs, one JSON line.

A peer is a class with .step(i) -> list of losses, and names. The rule by which a sample counts is that of stepbench:
a sample is as many steps as take 0.2 s; it is quiet if other programs took at most --quiet of the processors that the peer may use during it (on top of
those that it leaves free); the medians are over quiet samples, or the quietest quarter if there are too few."""
import argparse, copy, ctypes, json, math, os, subprocess, sys, time
import graph


AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


def has(flags):
    """Whether the processor has all of these."""
    return flags <= set(next(l for l in open("/proc/cpuinfo") if l.startswith("flags")).split())


def parse(about, batch, more=lambda p: None):
    """The flags; more adds a peer's own."""
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--batch", type=int, default=batch)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--iters", type=int, default=10, help="quiet samples wanted")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--max-s", type=float, default=60)
    p.add_argument("--quiet", type=float, default=0.08)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--width", type=int, default=0, help="0 = the network's own")
    p.add_argument("--aten", default="avx512" if has(AVX512) else "", help="ATEN_CPU_CAPABILITY ('' = torch's own choice); torch ends if that is more than the processor has")
    p.add_argument("--keep-denormals", action="store_true", help="torch's default; flushing them to zero, the default here, is faster")
    p.add_argument("--golden", default="", help="instead of timing, write what two tiny steps compute to this file")
    p.add_argument("--compile", default="", help="compile the step, forward and all its derivatives, with inductor: default, max-autotune, or its options as cpp_wrapper=True,…; '' = eager")
    p.add_argument("--check", default="", choices=("float32", "float64"), help="instead of timing, compare losses and weights of three steps, compiled and eager, in numbers of this type")
    more(p)
    a = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(a.threads)
    choose_core()
    if a.aten:
        os.environ["ATEN_CPU_CAPABILITY"] = a.aten
    return a


def blas_core():
    """The processor that OpenBLAS takes this one for; none if torch's BLAS is another library."""
    try:
        name = ctypes.CDLL("libblas.so.3").openblas_get_corename
    except (OSError, AttributeError):
        return None
    name.restype = ctypes.c_char_p
    return name().decode()


def choose_core():
    """OpenBLAS is left its choice, unless it does not know the processor: it then takes its oldest kernels (SSE3), which made the GRBM's peer
    three times as slow. It chooses when it is loaded, so another process is asked."""
    os.environ.pop("OPENBLAS_CORETYPE", None)
    ask = [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import harness; print(harness.blas_core())", os.path.dirname(os.path.abspath(__file__))]
    if subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() != "Prescott":
        return
    if has(AVX512):
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
    elif has({"avx2", "fma"}):
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"


HZ = os.sysconf("SC_CLK_TCK")
CPUS = os.sched_getaffinity(0)                       # before torch, whose OpenMP may bind this thread


def machine_busy():
    """Ticks that the processors of CPUS have worked. A container's own /proc/stat (LXCFS) has those under other numbers and no others: then all of it."""
    lines = [l.split() for l in open("/proc/stat") if l.startswith("cpu")]
    ours = {"cpu%d" % n for n in CPUS}
    own = [l for l in lines if l[0] in ours]
    if len(own) < len(CPUS):
        own = lines[:1]
    return sum(sum(int(x) for x in l[1:4] + l[6:9]) for l in own)      # user nice system irq softirq steal


def own_busy():
    f = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    return int(f[11]) + int(f[12])


def blas():
    """The library that sgemm comes from: "reference" is Debian's libblas3, which is many times slower than OpenBLAS. "openblas-pthread"
    has threads of its own, which fight for the cores with OpenMP's; "openblas-openmp" shares those."""
    maps = set(l.split()[-1] for l in open("/proc/self/maps") if "blas" in l)
    for kind in "openblas-openmp", "openblas-pthread", "openblas":
        if any(kind in os.path.realpath(name) for name in maps):
            return kind
    return "reference" if any(os.path.basename(n).startswith("libblas.so") for n in maps) else "built in"


def peak_mib(forget=False):
    """The largest resident size, in MiB, since the process began or since it was last forgotten."""
    if forget:
        open("/proc/self/clear_refs", "w").write("5")
    return round(int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) / 1024)


def median(v):
    v = sorted(v); n = len(v)
    return v[n // 2] if n % 2 else 0.5 * (v[n // 2 - 1] + v[n // 2])


def torch_for(a):
    """Sets torch up. Denormals first: threads inherit the mode of the one that starts them."""
    import torch
    torch.set_flush_denormal(not a.keep_denormals)
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    if a.compile:
        a.vectors = graph.vectors()
    if a.check:
        torch.set_default_dtype(getattr(torch, a.check))
    return torch


def tensors(torch, peer):
    return [x for n in peer.state for x in torch.utils._pytree.tree_flatten(getattr(peer, n))[0]]


def check(a, torch, peer):
    """Compares three steps of peer with those of a compiled copy: the same weights, the same draws."""
    twin = copy.deepcopy(peer, {id(torch): torch})                   # but for the module
    twin.compile(a.compile)
    for it in range(3):
        both = []
        for p in peer, twin:
            torch.manual_seed(a.seed + it); both.append(p.step(it))
        print("step %d, eager:" % it, *("%.9g" % x for x in both[0]), "compiled:", *("%.9g" % x for x in both[1]), flush=True)
    far = [float((x - y).abs().max() / x.abs().max().clamp_min(1e-30)) for x, y in zip(tensors(torch, peer), tensors(torch, twin))]
    print("difference of a tensor of the state, as a share of its largest number: at most %.1e, median %.1e; compiled in %.1f s" % (max(far), median(far), graph.Graph.seconds))


class Peer:
    """A peer that can be compiled. state names the attributes that update reads and changes; update(rates, …) -> losses is the whole step but for choosing
    the batch and drawing noise. rates are Adam's, a pair for each of its steps."""
    graph = None

    def compile(self, mode):
        self.graph = graph.Graph(self.torch, mode, self, self.state, self.update)

    def run(self, rates, *args):
        return [float(x) for x in (self.graph(self.torch.tensor(rates), *args) if self.graph else self.update(rates, *args))]


def measure(a, bench, model, peer, **more):
    import torch
    if a.check:
        return check(a, torch, peer)
    if a.compile:
        peer.compile(a.compile)
    for i in range(max(1, a.warmup) + bool(a.compile)):              # the first compiles
        t = time.perf_counter(); peer.step(i); t = time.perf_counter() - t
    if a.compile:                                                    # what the compiler needed is no part of the step's memory
        more.update(compile=a.compile, vectors=a.vectors, compile_s=round(graph.Graph.seconds, 1), compile_maxrss_mb=peak_mib()); peak_mib(forget=True)
    inner = max(1, math.ceil(0.2 / t))
    limit = a.quiet + max(0.0, 1 - a.threads / len(CPUS))
    rec, began, n, c0, losses = [], time.time(), max(1, a.warmup), time.process_time(), []
    while True:
        t, b, o = time.perf_counter(), machine_busy(), own_busy()
        for _ in range(inner):
            losses = peer.step(n); n += 1
        t = time.perf_counter() - t
        other = max(0, machine_busy() - b - (own_busy() - o)) / (HZ * t * len(CPUS))
        rec.append((t / inner, other))
        if sum(r[1] < limit for r in rec) >= a.iters or (time.time() - began > a.max_s and len(rec) >= 3):
            break
    quiet = [r for r in rec if r[1] < limit]
    use = quiet if len(quiet) >= min(3, a.iters) else sorted(rec, key=lambda r: r[1])[:max(3, len(rec) // 4)]
    tot = [r[0] for r in use]; m = median(tot)
    print(json.dumps(dict(
        bench=bench, lib="torch", model=model, world=1, threads=a.threads, batch=a.batch, step_ms=round(1e3 * m, 3), min_ms=round(1e3 * min(tot), 3),
        max_ms=round(1e3 * max(tot), 3), img_s=round(a.batch / m, 3), img_s_best=round(a.batch / min(tot), 3), steps_per_sample=inner,
        maxrss_mb=[peak_mib()], losses=dict(zip(peer.names, losses)), finite=all(map(math.isfinite, losses)),
        n_iters=len(rec), n_quiet=len(quiet), other_cpu_used=round(median([r[1] for r in use]), 3), cpu_s_per_step_rank0=round((time.process_time() - c0) / (len(rec) * inner), 4),
        channels_last=a.channels_last, torch=torch.__version__, blas=blas(), blas_core=blas_core(), flush_denormal=not a.keep_denormals, aten=os.environ.get("ATEN_CPU_CAPABILITY", "default"), malloc=os.environ.get("GLIBC_TUNABLES", ""), **more)), flush=True)


def wave(torch, shape, k):
    """Numbers that another program can make exactly: sin(1.3 i + 0.7 k)."""
    n = math.prod(shape)
    return torch.tensor([math.sin(1.3 * i + 0.7 * k) for i in range(n)], dtype=torch.float64).reshape(shape)


def golden(a, about, losses, params):
    with open(a.golden, "w") as f:
        f.write('{"about": %s,\n "losses": %s,\n "order": %s,\n "params": {\n' % (json.dumps(about), json.dumps(losses), json.dumps(list(params))))
        f.write(",\n".join('  "%s": [%s]' % (k, ", ".join("%.12g" % x for x in p.detach().flatten().tolist())) for k, p in params.items()) + "}}\n")


class Adam:
    """Adam's step on lists, differentiable: (p, m, v) -> (p, m, v). beta = (0.9, 0.95), as BiSM's code."""
    def __init__(self, torch, lr, beta=(0.9, 0.95)):
        self.torch, self.lr, (self.b1, self.b2), self.eps = torch, lr, beta, 1e-8

    def rates(self, t):
        """What step t = 1, 2, … multiplies the moments by."""
        return self.lr / (1 - self.b1 ** t), 1 / math.sqrt(1 - self.b2 ** t)

    def step(self, p, m, v, g, rates):
        rate, corr = rates
        m = [self.b1 * x + (1 - self.b1) * y for x, y in zip(m, g)]
        v = [self.b2 * x + (1 - self.b2) * y * y for x, y in zip(v, g)]
        p = [x - rate * y / (z.sqrt() * corr + self.eps) for x, y, z in zip(p, m, v)]
        return p, m, v

    def step_(self, p, m, v, g, rates):
        """The same, in place and without a graph of autograd; rates are a tensor in a compiled step."""
        rate, corr = rates
        if isinstance(rates, self.torch.Tensor):
            with self.torch.no_grad():
                for old, new in zip((p, m, v), self.step(p, m, v, g, rates)):
                    self.torch._foreach_copy_(old, new)
            return
        with self.torch.no_grad():
            self.torch._foreach_mul_(m, self.b1); self.torch._foreach_add_(m, g, alpha=1 - self.b1)
            self.torch._foreach_mul_(v, self.b2); self.torch._foreach_addcmul_(v, g, g, 1 - self.b2)
            d = self.torch._foreach_sqrt(v)
            self.torch._foreach_mul_(d, corr); self.torch._foreach_add_(d, self.eps)
            self.torch._foreach_addcdiv_(p, m, d, -rate)
