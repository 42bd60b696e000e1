#!/usr/bin/python3
"""Do energies of pictures drift up where noise is never seen, in PyTorch as well?

BiDVL's energy is trained on pictures and on samples only, and after some thousand steps noise has the lower energy. This trains the
same networks (those of the paper, layer for layer: bidvl_models.py, which is no part of this repository) by the same losses, rates and draws' laws on the
same pictures with PyTorch, and with this repository's train and evaluate, and prints the AUROC of test pictures against uniform noise
for both: CIFAR-10's binary records, conv32 at --width, the energy below its softplus, spectral norms as they stand (eval mode).

  make build
  bin/mkshards cifar10 --src cifar-10-batches-bin --out shards/cifar10
  trainer/experiment/peers/drift.py --peers PATH/TO/peers --records cifar-10-batches-bin --shards shards/cifar10 --out runs/drift

What is done is kept in --out, a line of JSON for each checkpoint, and not done again: the same command goes on, run by run.
It wants Debian's python3-torch and python3-numpy."""
import argparse, glob, json, os, subprocess, sys

LATENTS, VAE_WEIGHT, NOISES = 100, 0.05, 1000


def flags():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peers", required=True, help="the folder with bidvl_models.py")
    p.add_argument("--records", required=True, help="folder of data_batch_*.bin and test_batch.bin")
    p.add_argument("--shards", required=True, help="the same pictures as a data set of mkshards")
    p.add_argument("--out", required=True, help="folder of the runs and of results.jsonl")
    p.add_argument("--bin", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bin"), help="folder of train and evaluate")
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--steps", type=int, default=6000)
    p.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    p.add_argument("--seeds", default="1,2")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--of", default="torch,ebtrain", help="whose runs are done; the table shows all that there are")
    return p.parse_args()


class Results:
    """results.jsonl: one object for each checkpoint of a run."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "results.jsonl")
        self.rows = [json.loads(l) for l in open(self.path)] if os.path.exists(self.path) else []

    def have(self, of, seed, step):
        return any((r["of"], r["seed"], r["step"]) == (of, seed, step) for r in self.rows)

    def add(self, **row):
        self.rows.append(row)
        with open(self.path, "a") as f:
            print(json.dumps(row), file=f)
        print(json.dumps(row), flush=True)


def area(low, high):
    """The probability that one of low is below one of high, ties counting half."""
    import numpy as np
    from_high = np.sort(high)
    below, upto = np.searchsorted(from_high, low, "left"), np.searchsorted(from_high, low, "right")
    return float(1 - (below + upto).mean() / (2 * len(high)))


def pictures(pattern):
    import numpy as np
    files = sorted(glob.glob(pattern))
    if not files:
        sys.exit("drift.py: no file %s" % pattern)
    records = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, 3073) for f in files])
    return records[:, 1:].reshape(-1, 3, 32, 32)


def torch_run(a, seed, results):
    """One run of the peer, from its beginning."""
    import torch
    from bidvl_models import Deconv, SpecLower, build
    torch.set_num_threads(a.threads)
    torch.manual_seed(seed)
    energy, infer, gen, _ = build("conv32", a.width, LATENTS)
    for net in (energy, infer, gen):
        for m in net.modules():
            if isinstance(m, (torch.nn.Conv2d, torch.nn.ConvTranspose2d, Deconv)):
                torch.nn.init.normal_(getattr(m, "weight_orig", m.weight), 0, 0.02)
        net.train().to(memory_format=torch.channels_last)
    lower = SpecLower(infer, gen, VAE_WEIGHT, 1 / LATENTS)
    upper_adam = torch.optim.Adam(energy.parameters(), lr=1e-4, betas=(0, 0.9))
    lower_adam = torch.optim.Adam(list(infer.parameters()) + list(gen.parameters()), lr=3e-4, betas=(0, 0.9), weight_decay=1e-4)
    rates = [torch.optim.lr_scheduler.ExponentialLR(o, 0.998) for o in (upper_adam, lower_adam)]

    scaled = lambda u8: (torch.from_numpy(u8).float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
    train, test = scaled(pictures(os.path.join(a.records, "data_batch_*.bin"))), scaled(pictures(os.path.join(a.records, "test_batch.bin")))
    noise = torch.rand(NOISES, 3, 32, 32) * 2 - 1

    def logits(x):
        energy.eval()
        with torch.no_grad():
            y = torch.cat([energy.net(part).flatten() for part in x.split(100)]).numpy()
        energy.train()
        return y

    def measure(step):
        data, other = logits(test), logits(noise)
        results.add(of="torch", seed=seed, step=step, auroc=round(area(data, other), 4), data=round(float(data.mean()), 4), noise=round(float(other.mean()), 4))

    step = 0
    while step < a.steps:
        for part in torch.randperm(len(train)).split(a.batch):
            if len(part) < a.batch or step == a.steps:
                break
            v, h, eps = train[part], torch.randn(a.batch, LATENTS), torch.randn(a.batch, LATENTS)
            with torch.no_grad():
                fake = gen(h)
            upper = energy(v).mean() - energy(fake).mean()
            upper_adam.zero_grad()
            upper.backward()
            upper_adam.step()
            energy.requires_grad_(False)
            loss, _ = lower(v, h, eps, energy)
            lower_adam.zero_grad()
            loss.backward()
            lower_adam.step()
            energy.requires_grad_(True)
            step += 1
            if step % a.every == 0:
                measure(step)
        for r in rates:
            r.step()


def ebtrain_run(a, seed, results):
    """One run of ours; train goes on by itself where it was stopped."""
    run = os.path.join(a.out, "ebtrain-%d" % seed)
    train = [os.path.join(a.bin, "train"), "--out", run, "--threads", str(a.threads)]
    if os.path.exists(os.path.join(run, "config.json")):
        train += ["--resume"]
    else:
        train += ["--preset", "bidvl-cifar10", "--width", str(a.width), "--batch", str(a.batch), "--steps", str(a.steps), "--seed", str(seed), "--data", a.shards,
                  "--ckpt-every", str(a.every), "--ckpt-keep", "0", "--sample-every", "0", "--log-every", "100"]
    subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
    for step in range(a.every, a.steps + 1, a.every):
        if not results.have("ebtrain", seed, step):
            said = subprocess.run([os.path.join(a.bin, "evaluate"), "--json", "--run", run, "--step", str(step), "--measures", "energy", "--batch", str(NOISES), "--threads", str(a.threads)],
                                  check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            auroc = {o["against"]: o["value"] for o in json.loads(said)["auroc"]}
            results.add(of="ebtrain", seed=seed, step=step, auroc=round(auroc["noise"], 4))


def table(rows):
    """Markdown: a line for each step, a column for each run."""
    runs = sorted({(r["of"], r["seed"]) for r in rows})
    value = {(r["of"], r["seed"], r["step"]): r["auroc"] for r in rows}
    print("| steps | " + " | ".join("%s, seed %d" % r for r in runs) + " |\n|" + "---|" * (len(runs) + 1))
    for step in sorted({r["step"] for r in rows}):
        print("| %d | " % step + " | ".join("%.3f" % value[(*r, step)] if (*r, step) in value else "–" for r in runs) + " |")


def main():
    a = flags()
    sys.path.insert(0, a.peers)
    results = Results(a.out)
    runs = {"torch": torch_run, "ebtrain": ebtrain_run}
    for of in a.of.split(","):
        if of not in runs:
            sys.exit("drift.py: --of %s: there are torch and ebtrain" % of)
        for seed in map(int, a.seeds.split(",")):
            if not results.have(of, seed, a.steps // a.every * a.every):
                results.rows = [r for r in results.rows if (r["of"], r["seed"]) != (of, seed)] if of == "torch" else results.rows
                runs[of](a, seed, results)
    table(results.rows)


if __name__ == "__main__":
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512")
    os.environ.pop("OPENBLAS_CORETYPE", None)
    main()
