package main

import (
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/device"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/settings"
)

// virtualShards is how many parts --deterministic cuts the batch into, and so
// the largest number of ranks it can run on.
const virtualShards = 8

// Values of --on-bad-data.
const (
	badStop = "stop"
	badSkip = "skip"
)

// options are the flags of train.
type options struct {
	settings settings.Settings
	data     string             // where the data are
	was      *settings.Settings // of the run that goes on; nil for a new one
	model    bidvl.Config
	preset   string
	// lrGenerator is the rate of the generator's own optimiser; 0 is none.
	lrGenerator  float64
	latentWeight string // a number, or autoWeight

	steps       int64
	out         string
	resume      bool
	fixedBits   bool
	device      string
	precision   string
	threads     int
	logEvery    int64
	printEvery  int64
	ckptEvery   int64
	ckptKeep    int
	sampleEvery int64
	samples     int
	checkEvery  int64
	prefetch    int
	onBadData   string
	profile     int64
	remat       bool
}

// define adds the flags of train to fs, with the settings of start as their
// defaults.
func (o *options) define(fs *pflag.FlagSet, start bidvl.Preset) {
	o.model = start.Config
	fs.StringVar(&o.settings.Algo, "algo", "bidvl", "algorithm: bidvl")
	fs.StringVar(&o.preset, "preset", "", "settings of an experiment of the paper, which other flags change; help lists them")
	fs.StringVar(&o.settings.Net, "net", start.Config.Net.Name(), "networks: "+strings.Join(nets.Names(), ", ")+", for pictures of that size, with the settings that the paper uses for them")
	fs.StringVar(&o.data, "data", "synth", "data set: a directory made by mkshards, or synth, the built-in pictures")
	fs.StringVar(&o.settings.Split, "split", "train", "split of the data set to train on")
	fs.BoolVar(&o.settings.Flip, "flip", false, "mirror pictures left to right at random")
	fs.IntVar(&o.settings.Batch, "batch", start.Batch, "samples per step over all ranks")
	fs.Int64Var(&o.steps, "steps", start.Steps, "steps of the whole run, those before a resume included")
	fs.Uint64Var(&o.settings.Seed, "seed", 1, "seed of everything that is random")
	fs.StringVar(&o.out, "out", "", "run directory (required)")
	fs.BoolVar(&o.resume, "resume", false, "go on from the newest checkpoint in --out")
	o.defineModel(fs)

	fs.BoolVar(&o.fixedBits, "deterministic", false, "the same bits on 1, 2, 4 and 8 ranks: the batch is cut into 8 virtual shards, and each rank uses one thread (slower)")
	fs.StringVar(&o.device, "device", "auto", "where to compute: "+device.Names)
	fs.StringVar(&o.precision, "precision", device.F32, "type in which convolutions multiply: f32, or bf16, faster where the processor has it (weights, sums, statistics and losses stay float32)")
	fs.IntVar(&o.threads, "threads", 0, "threads per rank; 0 shares the cores among the ranks of this host")
	fs.IntVar(&o.prefetch, "prefetch", 2, "batches loaded ahead")
	fs.IntVar(&o.settings.ShuffleMemory, "shuffle-memory", 0, "MiB of decoded samples that a rank may keep to mix them with each other, which decides their order; 0 mixes pools of at least 16384 samples")
	fs.StringVar(&o.onBadData, "on-bad-data", badStop, "what to do about damaged data: stop, after a checkpoint of the steps done, or skip, and take other samples in their place")
	fs.Int64Var(&o.logEvery, "log-every", 1, "steps between lines of metrics.jsonl")
	fs.Int64Var(&o.printEvery, "print-every", 0, "where there is no terminal: steps between lines of progress; 0 is a line every 10 seconds")
	fs.Int64Var(&o.ckptEvery, "ckpt-every", 100, "steps between checkpoints; 0 only at the end")
	fs.IntVar(&o.ckptKeep, "ckpt-keep", 3, "newest checkpoints that are kept; 0 keeps all")
	fs.Int64Var(&o.sampleEvery, "sample-every", 100, "steps between sample grids; 0 only at the end")
	fs.IntVar(&o.samples, "samples", 64, "pictures in a sample grid; 0 makes none")
	fs.Int64Var(&o.checkEvery, "check-every", 100, "steps between comparisons of all ranks' weights; 0 only at the end")
	fs.Int64Var(&o.profile, "profile", -1, "step, from 0, of which a trace of all ranks' ops, waits and collectives is written into --out, to be opened in ui.perfetto.dev; -1 is none")
	fs.BoolVar(&o.remat, "remat", false, "use less memory: compute what costs little again in the backward pass instead of keeping it (the same numbers, more time)")
}

// parse reads the command line: once for --preset and --net, and again with
// their settings as the defaults. A run that is resumed has all of them in its
// config.json.
func parse(args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	start := bidvl.CIFAR10()
	start.Steps = defaultSteps
	o, fs, err := parseFrom(start, args, out)
	if err != nil {
		return nil, nil, err
	}
	if o.resume && o.out != "" {
		saved, err := savedRun(o, fs)
		if err != nil {
			return nil, nil, err
		}
		if saved != nil {
			return parseResumed(saved, args, out)
		}
	}
	if o.preset != "" && o.preset != presetHelp && !fs.Changed("data") {
		return nil, nil, cliflag.Usage("--preset %s needs --data: the directory that mkshards made, or synth for the built-in pictures", o.preset)
	}
	if start, err = o.start(fs, start, out); err != nil {
		return nil, nil, err
	}
	if o, fs, err = parseFrom(start, args, out); err != nil {
		return nil, nil, err
	}
	return o, fs, o.complete()
}

// complete makes the settings of the flags and reports the first mistake.
func (o *options) complete() error {
	o.share()
	o.settings.BiDVL = &o.model
	if o.precision != device.F32 {
		o.settings.Precision = o.precision
	}
	if o.fixedBits {
		o.settings.Shards = virtualShards
		if n := o.settings.Batch; n%virtualShards != 0 {
			return cliflag.Usage("--deterministic cuts the batch into %d shards, and --batch is %d: want a multiple of %d", virtualShards, n, virtualShards)
		}
		if o.threads > 1 {
			return cliflag.Usage("--deterministic uses one thread per rank, and --threads is %d: use more ranks", o.threads)
		}
		o.threads = 1
	}
	return o.validate()
}

func parseFrom(start bidvl.Preset, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	o, fs := &options{}, pflag.NewFlagSet("train", pflag.ContinueOnError)
	o.define(fs, start)
	return o, fs, program.Parse(fs, args, out)
}

// validate reports the first mistake that does not need the data.
func (o *options) validate() error {
	if o.out == "" {
		return cliflag.Usage("--out is required: the directory that this run writes, for example --out runs/a")
	}
	o.out = filepath.Clean(o.out)
	if o.settings.Algo != "bidvl" {
		return cliflag.Usage("unknown --algo %q: this build has bidvl", o.settings.Algo)
	}
	onDevice := func() error { return cliflag.AsUsage(device.Check(o.device, o.precision, o.threads)) }
	for _, check := range []func() error{o.checkChoices, o.checkCounts, o.checkRates, o.readWeight, onDevice} {
		if err := check(); err != nil {
			return err
		}
	}
	if n := o.model.Net; n.Family == nets.ConvFamily && n.Width%4 != 0 {
		return cliflag.Usage("want --width of a multiple of 4, got %d", n.Width)
	}
	if _, err := o.settings.Algorithm(); err != nil {
		return &cliflag.UsageError{Err: err}
	}
	return nil
}

// checkCounts reports the first whole number that is out of its range. What is
// too large can only be a typing mistake.
func (o *options) checkCounts() error {
	const any = math.MaxInt64
	width := int64(1)
	if o.model.Net.Family == nets.ConvFamily {
		width = 4
	}
	for _, c := range []struct {
		flag           string
		n, least, most int64
	}{
		{"--steps", o.steps, 1, any}, {"--batch", int64(o.settings.Batch), 1, 1 << 30}, {"--width", int64(o.model.Net.Width), width, 1 << 14},
		{"--latent", int64(o.model.Net.Latent), 1, 1 << 20}, {"--lower-steps", int64(o.model.LowerSteps), 1, 100}, {"--samples", int64(o.samples), 0, 1 << 20}, {"--prefetch", int64(o.prefetch), 0, 1 << 10}, {"--shuffle-memory", int64(o.settings.ShuffleMemory), 0, 1 << 30},
		{"--log-every", o.logEvery, 1, any}, {"--print-every", o.printEvery, 0, any}, {"--check-every", o.checkEvery, 0, any},
		{"--ckpt-every", o.ckptEvery, 0, any}, {"--ckpt-keep", int64(o.ckptKeep), 0, any}, {"--sample-every", o.sampleEvery, 0, any},
		{"--profile", o.profile, -1, o.steps - 1},
	} {
		switch {
		case c.n < c.least:
			return cliflag.Usage("want %s of at least %d, got %d", c.flag, c.least, c.n)
		case c.n > c.most:
			return cliflag.Usage("want %s of at most %d, got %d", c.flag, c.most, c.n)
		}
	}
	return nil
}

// checkRates reports the first number that is out of its range.
func (o *options) checkRates() error {
	m := o.model
	for _, c := range []struct {
		flag string
		v    float64
		ok   bool
		want string
	}{
		{"--lr", m.Lower.LR, m.Lower.LR > 0, "above 0"},
		{"--lr-energy", m.Upper.LR, m.Upper.LR > 0, "above 0"},
		{"--beta1", m.Upper.Beta1, m.Upper.Beta1 >= 0 && m.Upper.Beta1 < 1, "of at least 0 and below 1"},
		{"--beta2", m.Upper.Beta2, m.Upper.Beta2 >= 0 && m.Upper.Beta2 < 1, "of at least 0 and below 1"},
		{"--lr-decay", m.Upper.Decay, m.Upper.Decay > 0 && m.Upper.Decay <= 1, "above 0 and at most 1"},
		{"--weight-decay", m.Lower.WeightDecay, m.Lower.WeightDecay >= 0, "of at least 0"},
		{"--vae-weight", m.VAEWeight, m.VAEWeight >= 0, "of at least 0"},
		{"--lr-generator", o.lrGenerator, o.lrGenerator >= 0, "of at least 0"},
	} {
		if !c.ok || c.v > math.MaxFloat32 {
			return cliflag.Usage("want %s %s, and finite in float32, got %v", c.flag, c.want, c.v)
		}
	}
	return nil
}
