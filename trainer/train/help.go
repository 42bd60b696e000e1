package main

import (
	"slices"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/setting"
)

// program is what --help shows of train besides the flags themselves; own are
// the settings of the method.
func program(own []*setting.Setting) cliflag.Program {
	return cliflag.Program{Name: "train", About: about, Groups: slices.Concat(before, chosen.Groups(own), after)}
}

const about = `train trains an energy-based latent variable model and writes a run directory.

Alone it is one rank; under ddplaunch it is one of several:

  train --data synth --width 16 --batch 32 --steps 200 --out runs/a
  ddplaunch -nproc 2 train --net conv32 --width 16 --data shards/celeba32 \
      --batch 64 --steps 300 --out runs/celeba32
  ddplaunch -nproc 2 train --preset bidvl-celeba128 \
      --data shards/celeba128 --out runs/celeba128
  ddplaunch -nproc 2 train --resume --out runs/celeba32
  train --from runs/celeba32 --data shards/mine --lr 1e-4 --out runs/mine

--batch is over all ranks, so a run means the same on 1, 2 or 8 of them. The run
directory holds config.json, metrics.jsonl, samples/, ckpt/, events/ and a log
for each rank. Interrupt it with Ctrl-C: it stops after the current step and
writes a checkpoint (exit code 75). --resume --out RUN goes on: all settings are
in config.json. Flags beside it change --steps, --data (where the same data are
now) and what is said of the machine and of outputs; nothing else may change. A
new run that begins with the weights of another, --from RUN, may change the
rest: its settings are those of RUN, but for what is said. It may begin with
some of the networks of another method's run, too:

  train --algo bidvl --from runs/vae --from-networks inference,generator \
      --data shards/celeba32 --out runs/bidvl
`

// before and after are the groups of flags that all methods share.
var (
	before = []cliflag.Group{
		{Title: "The run", Flags: []string{"out", "resume", "from", "from-step", "from-networks", "steps", "seed", "ema", "deterministic", "precision", "allow-bf16-scores", "verify-hypergradient"}},
		{Title: "Data", Flags: []string{"data", "split", "batch", "flip", "shuffle-memory", "on-bad-data"}},
	}
	after = []cliflag.Group{
		{Title: "The machine", Flags: []string{"device", "cuda-graph", "threads", "prefetch", "remat", "shard-optimizer"}},
		{Title: "Outputs", Flags: []string{"ckpt-every", "ckpt-keep", "sample-every", "samples", "log-every", "print-every", "check-every", "profile"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	}
)
