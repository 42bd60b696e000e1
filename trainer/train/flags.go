package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/computed"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
	"ebtrain/trainer/trained"
)

// maxShards is how many parts --deterministic cuts the batch into if it can, and
// so the largest number of ranks it can run on.
const maxShards = 8

// defaultSampleEvery is --sample-every where samples are drawn in one pass.
const defaultSampleEvery = 100

// Values of --on-bad-data.
const (
	badStop = "stop"
	badSkip = "skip"
)

// options are the flags of train.
type options struct {
	settings settings.Settings
	data     string             // where the data are
	inherits inherited          // if --data is that of another start
	was      *settings.Settings // of the run that goes on; nil for a new one
	model    algo.Config        // of the method
	own      *setting.Set       // the settings of model
	preset   string

	how          computed.Flags
	steps        int64
	out          string
	resume       bool
	from         string
	fromThere    string // where from is, if that is relative and seen from another folder
	fromStep     int64
	fromNetworks string
	fromSkipped  []error // of damaged checkpoints that are newer
	fixedBits    bool
	logEvery     int64
	printEvery   int64
	ckptEvery    int64
	ckptKeep     int
	sampleEvery  int64
	samples      int
	checkEvery   int64
	prefetch     int
	onBadData    string
	profile      int64
	verify       bool
	bf16Scores   bool
}

// define adds the flags of train to fs, with the settings of at as their
// defaults, and those of its method.
func (o *options) define(fs *pflag.FlagSet, at chosen.Start) {
	o.model, o.own = at.Define(fs, &o.settings, &o.preset)
	fs.StringVar(&o.data, "data", "synth", "data set: a directory made by mkshards, or a built-in one (synth, checkerboard, gauss)")
	fs.Int64Var(&o.steps, "steps", at.Preset.Steps, "steps of the whole run, those before a resume included")
	fs.StringVar(&o.out, "out", "", "run directory (required)")
	fs.BoolVar(&o.resume, "resume", false, "go on from the newest checkpoint in --out")
	fs.StringVar(&o.from, "from", "", "run directory whose weights a new run begins with, at step 0 and with new optimisers; its settings are that run's, all that are not said, or, where --algo, --preset or --net is said, those of a new run, whose networks must be the same, or --from-networks says which are")
	fs.Int64Var(&o.fromStep, "from-step", trained.Newest, "steps after which the checkpoint of --from was written; -1 is the newest")
	fs.StringVar(&o.fromNetworks, "from-networks", "", "networks, with commas between, that begin with the weights of those of the same names and sizes in --from, as inference,generator of a VAE for --algo bidvl; the others begin anew; without this flag none does")

	fs.BoolVar(&o.fixedBits, "deterministic", false, "the same bits on 1, 2, 4 and 8 ranks, as far as the batch can be halved: it is cut into up to 8 virtual shards, and each rank uses one thread (slower)")
	o.how.Define(fs)
	fs.Float64Var(&o.settings.Average, "ema", 0, "decay of exponential moving averages of the weights, which are kept beside them, as 0.999: grids are drawn from them, and sample and evaluate take them with --ema; 0 keeps none")
	fs.IntVar(&o.prefetch, "prefetch", 2, "batches loaded ahead")
	fs.IntVar(&o.settings.ShuffleMemory, "shuffle-memory", 0, "MiB of decoded samples that a rank may keep to mix them with each other, which decides their order; 0 mixes pools of at least 16384 samples")
	fs.StringVar(&o.onBadData, "on-bad-data", badStop, "what to do about damaged data: stop, after a checkpoint of the steps done, or skip, and take other samples in their place")
	fs.Int64Var(&o.logEvery, "log-every", 1, "steps between lines of metrics.jsonl, which numbers steps from 0; a step whose loss jumps has one, too")
	fs.Int64Var(&o.printEvery, "print-every", 0, "where there is no terminal: steps between lines of progress; 0 is a line every 10 seconds")
	fs.Int64Var(&o.ckptEvery, "ckpt-every", 100, "steps between checkpoints; 0 only at the end")
	fs.IntVar(&o.ckptKeep, "ckpt-keep", 3, "newest checkpoints that are kept; 0 keeps all")
	fs.Int64Var(&o.sampleEvery, "sample-every", defaultSampleEvery, "steps between sample grids; 0 only at the end, as it is without this flag where a sample takes many transitions")
	fs.IntVar(&o.samples, "samples", 64, "samples in a grid of pictures, a plot of points of the plane, or a file of sentences or of other points' numbers; 0 makes none")
	fs.Int64Var(&o.checkEvery, "check-every", 100, "steps between comparisons of all ranks' weights; 0 only at the end")
	fs.Int64Var(&o.profile, "profile", -1, "number of a step, from 0 as in metrics.jsonl (20 is step 21/100 of the console), of which a trace of all ranks' ops, waits and collectives is written into --out, to be opened in ui.perfetto.dev; -1 is none")
	fs.BoolVar(&o.verify, verifyFlag, false, "train nothing: verify in float64 that the gradient through the unrolled lower level is that of one process on the whole batch, and its finite differences; exit 1 if not (bi-level methods)")
	fs.BoolVar(&o.bf16Scores, "allow-bf16-scores", false, "take --precision bf16 for losses of scores too, whose second derivatives lose most of their digits in it")
}

// first is what decides which other flags there are.
type first struct {
	chosen.Names
	out    string
	from   string
	resume bool
}

// peek finds it in a command line.
func peek(args []string) first {
	found := chosen.Peek(args, []string{"out", "from"}, []string{"resume"})
	resume, err := strconv.ParseBool(found["resume"])
	return first{chosen.PeekNames(args), found["out"], found["from"], err == nil && resume}
}

// resumes says whether the command line goes on with a run, if there is one in its --out.
func (f first) resumes() bool { return f.resume && f.out != "" }

// inherits says whether a new run has the flags of the one at --from, but for what is said.
func (f first) inherits() bool { return f.from != "" && f.Names == (chosen.Names{}) }

// parse reads the command line: --algo, --preset and --net first, which decide what other
// flags there are, then all of it. saved is the run that it goes on with, whose settings are
// in there; nil for a new one. One that begins with the weights of another, and names none of
// the three, has the settings of that.
func parse(saved *rundir.Config, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	if saved != nil {
		return parseResumed(saved, args, out)
	}
	first := peek(args)
	if first.inherits() {
		return parseFrom(first.from, args, out)
	}
	if first.Algo == chosen.ListAll {
		return nil, nil, chosen.ListMethods(out)
	}
	at, err := first.Begin()
	if err != nil {
		return nil, nil, err
	}
	o, fs, err := parseNew(at, first.Algo, args, out)
	return o, fs, cliflag.Within(at.Help, err)
}

// parseNew is parse for a run that is not resumed.
func parseNew(at chosen.Start, method string, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	o, fs := &options{}, pflag.NewFlagSet("train", pflag.ContinueOnError)
	o.define(fs, at)
	if err := chosen.Elsewhere(at.Method.Name, program(o.own.All()).Parse(fs, args, out)); err != nil {
		return nil, nil, err
	}
	if err := at.Check(o.settings); err != nil {
		return nil, nil, err
	}
	switch {
	case o.preset == chosen.ListAll:
		return nil, nil, chosen.ListPresets(method, out)
	case o.preset != "" && !fs.Changed("data"):
		return nil, nil, cliflag.Usage("--preset %s needs --data: the directory that mkshards made, or built-in data: synth for pictures, checkerboard or gauss for points", o.preset)
	}
	return o, fs, o.complete()
}

// complete makes the settings of the flags and reports the first mistake that
// does not need the data.
func (o *options) complete() error {
	if o.out == "" && !o.verify {
		return cliflag.Usage("--out is required: the directory that this run writes, for example --out runs/a")
	}
	o.out = filepath.Clean(o.out)
	if o.how.Precision != device.F32 {
		o.settings.Precision = o.how.Precision
	}
	for _, check := range []func() error{o.checkChoices, o.checkCounts, o.checkAverage, o.own.Finish, o.checkBatch, o.how.Check, o.checkScores, o.fixBits, o.checkFrom} {
		if err := check(); err != nil {
			return cliflag.AsUsage(err)
		}
	}
	return nil
}

// checkBatch reports a batch that the method's losses find too small on any number of ranks.
func (o *options) checkBatch() error {
	if least := algo.LeastBatchOf(o.model); o.settings.Batch < least {
		return fmt.Errorf("want --batch of at least %d for the losses of --algo %s as they are set, got %d", least, o.settings.Algo, o.settings.Batch)
	}
	return nil
}

// checkScores reports bfloat16 for losses that are of scores, and leave for it where there
// is none.
func (o *options) checkScores() error {
	if o.bf16Scores && o.how.Precision == device.F32 {
		return fmt.Errorf("--allow-bf16-scores is of no use to --precision %s: leave it out, or say --precision %s", device.F32, device.BF16)
	}
	c, ok := o.model.(algo.ScoreLosses)
	if o.how.Precision == device.F32 || o.bf16Scores || !ok || !c.ScoreLosses() {
		return nil
	}
	return fmt.Errorf("--precision %s: the losses of --algo %s are of scores, whose second derivatives lose most of their digits in it: train in %s, or say --allow-bf16-scores", o.how.Precision, o.settings.Algo, device.F32)
}

// fixBits cuts the batch into virtual shards for --deterministic: as many as the
// largest power of two that divides it and leaves together what the method sees
// together, but at most maxShards.
func (o *options) fixBits() error {
	if !o.fixedBits {
		return nil
	}
	if o.how.Threads > 1 {
		return fmt.Errorf("--deterministic uses one thread per rank, and --threads is %d: use more ranks", o.how.Threads)
	}
	o.how.Threads = 1
	o.settings.Shards = 1
	for n := 2; n <= maxShards && o.settings.Batch%(n*algo.GroupOf(o.model)) == 0; n *= 2 {
		o.settings.Shards = n
	}
	return nil
}

// checkChoices reports a word that is not one of its flag's.
func (o *options) checkChoices() error {
	if all := []string{badStop, badSkip}; !slices.Contains(all, o.onBadData) {
		return fmt.Errorf("unknown --on-bad-data %q: want %s", o.onBadData, setting.Choices(all))
	}
	return nil
}

// checkAverage reports a decay that makes no averages.
func (o *options) checkAverage() error {
	if o.settings.Average == 0 || (optim.Average{Decay: o.settings.Average}).Validate() == nil {
		return nil
	}
	return fmt.Errorf("want --ema above 0 and below 1, as 0.999, or 0 for no averages, got %v", o.settings.Average)
}

// checkCounts reports the first whole number that is out of its range.
func (o *options) checkCounts() error {
	const any = math.MaxInt64
	return cmp.Or(
		setting.InRange("steps", o.steps, 1, any),
		setting.InRange("batch", o.settings.Batch, 1, 1<<30),
		setting.InRange("samples", o.samples, 0, 1<<20),
		setting.InRange("prefetch", o.prefetch, 0, 1<<10),
		setting.InRange("shuffle-memory", o.settings.ShuffleMemory, 0, 1<<30),
		setting.InRange("log-every", o.logEvery, 1, any),
		setting.InRange("print-every", o.printEvery, 0, any),
		setting.InRange("check-every", o.checkEvery, 0, any),
		setting.InRange("ckpt-every", o.ckptEvery, 0, any),
		setting.InRange("ckpt-keep", o.ckptKeep, 0, any),
		setting.InRange("sample-every", o.sampleEvery, 0, any),
		setting.InRange("profile", o.profile, -1, o.steps-1),
		setting.InRange("from-step", o.fromStep, trained.Newest, any),
	)
}
