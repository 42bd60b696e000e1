#!/usr/bin/python3
"""Which settings fit the Frey faces, in PyTorch as well?

The papers say that DSM and BiDSM of a Gaussian RBM with 400 hidden units work at the noise level 0.3 alone. This trains the same
models with PyTorch (BiDSM by the peer of stepbench, grbm_bidsm.py, whose steps equal the program's number for number) and measures
them as evaluate does: the Fisher metric with the exact trace, and the log-likelihood by annealed importance sampling from the base
rates, both on the test frames, of the last step.

  trainer/experiment/peers/frey.py --mat frey_rawface.mat --out runs/frey.jsonl dsm:0.3 dsm:0.1 dsm:1 dsm:0.3:1e-2 bidsm:0.1 bidsm:0.3:2e-4:10:5

A run is METHOD:SIGMA[:RATE[:K:N]]. What is in --out is not done again. It wants Debian's python3-torch and python3-numpy."""
import argparse, json, math, os, struct, sys, time

VISIBLE, HIDDEN, FRAMES, BATCH = 560, 400, 1965, 100


def flags():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", nargs="+", metavar="METHOD:SIGMA[:RATE[:K:N]]")
    p.add_argument("--mat", required=True, help="frey_rawface.mat")
    p.add_argument("--out", required=True, help="results, a line of JSON for each run")
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--chains", type=int, default=2000)
    p.add_argument("--rungs", type=int, default=2000)
    return p.parse_args()


def frames(torch, path):
    """Training, validation and test frames, in the order of the film, in [0, 1]: 1400, 300, 265."""
    text = open(path, "rb").read()
    at = text.find(struct.pack("<II", 2, VISIBLE * FRAMES))        # miUINT8 and its length
    if at < 0:
        sys.exit(f"{path}: no array of {VISIBLE}x{FRAMES} bytes; give the original frey_rawface.mat")
    x = torch.frombuffer(bytearray(text[at + 8:at + 8 + VISIBLE * FRAMES]), dtype=torch.uint8).reshape(FRAMES, VISIBLE).float() / 255
    return x[:1400], x[1400:1700], x[1700:]


def score(torch, theta, v):
    """The gradient by v of the marginal's logarithm, and the hidden units' probabilities; theta is s, W, b, c."""
    s, w, b, c = theta
    p = torch.sigmoid(c + v @ w)
    return (b - v) * (-2 * s).exp() + p @ w.t(), p


def dsm(torch, train, sigma, rate, steps):
    bound = 1 / math.sqrt(HIDDEN)
    u = lambda *shape: bound * (2 * torch.rand(*shape) - 1)
    theta = [torch.zeros(VISIBLE), u(VISIBLE, HIDDEN), u(VISIBLE), u(HIDDEN)]
    for p in theta:
        p.requires_grad_(True)
    adam = torch.optim.Adam(theta, rate)
    for _ in range(steps):
        v = train[torch.randint(0, len(train), (BATCH,))]
        noise = torch.randn(BATCH, VISIBLE)
        s, _ = score(torch, theta, v + sigma * noise)
        loss = 0.5 * ((s + noise / sigma) ** 2).sum() / BATCH
        adam.zero_grad()
        loss.backward()
        adam.step()
    return [p.detach() for p in theta], float(loss)


def bidsm(torch, train, sigma, rate, steps, k, n):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../stepbench/peers"))
    from grbm_bidsm import Peer
    peer = Peer(torch, BATCH, VISIBLE, HIDDEN, k=k, n=n, sigma=sigma, lr=rate)
    peer.pool = train
    for i in range(steps):
        losses = peer.step(i)
    return peer.theta, losses[0]


def fisher(torch, theta, v):
    s, p = score(torch, theta, v)
    trace = -(-2 * theta[0]).exp().sum() + (p * (1 - p)) @ (theta[1] ** 2).sum(0)
    return float((0.5 * (s ** 2).sum(1) + trace).mean())


def free(torch, theta, v, beta=1.0):
    s, w, b, c = theta
    return ((v - b) ** 2 * (0.5 * (-2 * s).exp())).sum(1) - torch.nn.functional.softplus(beta * (c + v @ w)).sum(1)


def log_z(torch, theta, chains, rungs):
    """Annealed importance sampling from the model without W and c [ALGORITHMS.md §2.2]."""
    s, w, b, c = theta
    std = s.exp()
    base = float(s.sum()) + VISIBLE / 2 * math.log(2 * math.pi) + HIDDEN * math.log(2)
    v = b + std * torch.randn(chains, VISIBLE)
    weight = torch.zeros(chains, dtype=torch.float64)
    for i in range(1, rungs + 1):
        now = i / rungs
        weight += (free(torch, theta, v, (i - 1) / rungs) - free(torch, theta, v, now)).double()
        h = torch.bernoulli(torch.sigmoid(now * (c + v @ w)))
        v = b + std ** 2 * now * (h @ w.t()) + std * torch.randn(chains, VISIBLE)
    return base + float(torch.logsumexp(weight, 0)) - math.log(chains)


def one(torch, a, spec):
    parts = spec.split(":")
    method, sigma, rate = parts[0], float(parts[1]), float((parts + ["2e-4"])[2]) if len(parts) > 2 else 2e-4
    k, n = (int(parts[3]), int(parts[4])) if len(parts) > 4 else (5, 5)
    train, _, test = frames(torch, a.mat)
    torch.manual_seed(a.seed)
    began = time.process_time()
    theta, loss = dsm(torch, train, sigma, rate, a.steps) if method == "dsm" else bidsm(torch, train, sigma, rate, a.steps, k, n)
    trained = time.process_time() - began
    with torch.no_grad():
        ll = float(-free(torch, theta, test).mean()) - log_z(torch, theta, a.chains, a.rungs)
        return dict(run=spec, seed=a.seed, steps=a.steps, loss=round(loss, 2), fisher=round(fisher(torch, theta, test), 1), ll=round(ll, 2), cpu_s=round(trained))


def main():
    a = flags()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(a.threads)
    os.environ.pop("OPENBLAS_CORETYPE", None)
    import torch
    torch.set_flush_denormal(True)
    torch.set_num_threads(a.threads)
    done = [json.loads(l) for l in open(a.out)] if os.path.exists(a.out) else []
    for spec in a.runs:
        if any((r["run"], r["seed"], r["steps"]) == (spec, a.seed, a.steps) for r in done):
            continue
        row = one(torch, a, spec)
        with open(a.out, "a") as f:
            print(json.dumps(row), file=f)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
