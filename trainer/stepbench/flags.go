package main

import (
	"cmp"
	"io"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/computed"
	"ebtrain/trainer/setting"
)

// program is what --help shows of stepbench besides the flags themselves.
var program = cliflag.Program{
	Name: "stepbench",
	About: `stepbench times the full training step of a network, on synthetic data.

  stepbench --net conv32 --batch 64 --threads 2           one rank, 2 threads
  stepbench -nproc 2 --net conv32 --batch 64 --threads 1  2 ranks of one thread
  stepbench --net grbm-bidsm --batch 100 --json           one JSON line

With -nproc above 1 it has the ddplaunch beside it (or on PATH) start the ranks;
it may as well be started by ddplaunch itself. --batch is over all ranks.
`,
	Groups: []cliflag.Group{
		{Title: "What is timed", Flags: []string{"net", "width", "latent", "batch", "fresh-latent", "seed"}},
		{Title: "How", Flags: []string{"nproc", "threads", "device", "cuda-graph", "precision", "remat", "shard-optimizer"}},
		{Title: "Samples", Flags: []string{"steps", "warmup", "max-s", "quiet", "peak-size"}},
		{Title: "Outputs", Flags: []string{"json", "profile-ops"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// options are the flags of stepbench.
type options struct {
	how           computed.Flags
	nproc         int
	net           string
	width, latent int
	batch         int
	steps, warmup int
	json, profile bool
	freshLatent   bool
	quiet, maxS   float64
	peakSize      int
	seed          uint64
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := pflag.NewFlagSet("stepbench", pflag.ContinueOnError)
	fs.IntVar(&o.nproc, "nproc", 0, "ranks on this machine; 0 is one, or those that ddplaunch has started")
	fs.StringVar(&o.net, "net", "conv32", "what is trained: "+netNames())
	fs.IntVar(&o.width, "width", 0, "base width of the network; 0 is the full width")
	fs.IntVar(&o.latent, "latent", 0, "size of the latent vector; 0 is the paper's")
	fs.IntVar(&o.batch, "batch", 0, "samples per step over all ranks; 0 is the network's own, which the output says")
	o.how.Define(fs)
	fs.IntVar(&o.steps, "steps", 10, "quiet samples wanted, each of one step, or of as many as take 0.2 s")
	fs.IntVar(&o.warmup, "warmup", 3, "steps before the first sample, at least 1")
	fs.Float64Var(&o.maxS, "max-s", 120, "seconds after which it makes do with the samples it has")
	fs.Float64Var(&o.quiet, "quiet", 0.08, "a sample is quiet if other programs took at most this share of the cores that ranks may use, on top of those left free")
	fs.BoolVar(&o.freshLatent, "fresh-latent", false, "bidvl: new latents in the lower level, one more pass through the generator, as the PyTorch peer has")
	fs.IntVar(&o.peakSize, "peak-size", 2048, "extent of the square matrices whose product measures the peak; 0 does not measure it")
	fs.BoolVar(&o.json, "json", false, "print JSON lines, not a table")
	fs.BoolVar(&o.profile, "profile-ops", false, "time every op; costs a little")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of weights, data and noise")
	if err := program.Parse(fs, args, out); err != nil {
		return nil, err
	}
	return o, o.validate()
}

// validate reports the first mistake, and fills in what was left to the network.
func (o *options) validate() error {
	n, ok := nets[o.net]
	if !ok {
		return cliflag.Usage("unknown --net %q: want one of %s", o.net, netNames())
	}
	for _, d := range []struct {
		flag string
		v    *int
		def  int
	}{{"--width", &o.width, n.width}, {"--latent", &o.latent, n.latent}, {"--batch", &o.batch, n.batch}} {
		if *d.v != 0 && d.def == 0 {
			return cliflag.Usage("%s is not a size of --net %s", d.flag, o.net)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	err := cmp.Or(
		setting.InRange("batch", o.batch, 1, 1<<24),
		setting.InRange("steps", o.steps, 1, 1<<24),
		setting.InRange("warmup", o.warmup, 1, 1<<24),
		setting.InRange("nproc", o.nproc, 0, 1024),
		setting.InRange("peak-size", o.peakSize, 0, 1<<14),
		setting.InRange("width", o.width, min(1, n.width), 1<<14),
		setting.InRange("latent", o.latent, min(1, n.latent), 1<<20),
	)
	if err != nil {
		return cliflag.AsUsage(err)
	}
	if !(o.maxS > 0) || !(o.quiet >= 0) {
		return cliflag.Usage("want --max-s above 0 and --quiet of at least 0, got %v and %v", o.maxS, o.quiet)
	}
	if _, err := n.model(o); err != nil {
		return err
	}
	return cliflag.AsUsage(o.how.Check())
}

// divides reports a batch that the ranks cannot share equally.
func (o *options) divides(ranks int) error {
	if o.batch%ranks == 0 {
		return nil
	}
	return cliflag.Usage("--batch %d is over all ranks and cannot be shared equally by %d: want a multiple of %d", o.batch, ranks, ranks)
}
