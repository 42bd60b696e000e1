package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/computed"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

// program is what --help shows of bench besides the flags themselves; own are the
// settings of the method.
func program(own []*setting.Setting) cliflag.Program {
	return cliflag.Program{Name: "bench", About: about, Groups: slices.Concat(before, chosen.Groups(own), after)}
}

const about = `bench measures how training scales, and predicts how it would go on.

  ddplaunch -nproc 8 bench --net conv32 --batch 256 --json scaling.json
  bench -nproc 2 --net conv32 --width 16 --batch 32    starts ddplaunch itself
  bench -nproc 4 --width 8 --batch 32 --check --fit-up-to 2
  bench --from scaling.json --predict 512,10000        no launcher needed

The steps are those of train, with the same flags. 1, 2, 4 and more of the ranks
take turns in one run, so that what changes hits all; the others sleep.
Of the largest number --batch is over all ranks. With fewer

  strong   the batch is the same, so each rank has more to do
  weak     each rank has the same to do, so the batch is smaller

Efficiency is images/s for each rank, over those of the smallest number of ranks
in the same round; [a, b] is its 95 % confidence. A step is computing, exposed
communication (waiting for collectives that all ranks have come to), waiting for
data, and waiting for the slowest rank.

Then collectives are timed and their costs fitted, and a simulation plays the
step on more ranks, each with the batch that it has now. A prediction is no
measurement: --check fits on few ranks, predicts the others that were measured,
and prints the error. --json keeps all of it; --from predicts again from that
file, with the same bits.
`

var (
	before = []cliflag.Group{
		{Title: "What is measured", Flags: []string{"ranks", "scaling", "confidence", "max-time"}},
		{Title: "What is predicted", Flags: []string{"predict", "ranks-per-host", "fit-time", "fit-up-to", "check", "link-gbit", "link-us", "from"}},
		{Title: "Outputs", Flags: []string{"out", "json", "picture"}},
		{Title: "Data", Flags: []string{"data", "split", "batch", "flip", "seed"}},
	}
	after = []cliflag.Group{
		{Title: "The machine", Flags: []string{"nproc", "device", "cuda-graph", "precision", "threads", "prefetch", "remat", "shard-optimizer"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	}
)

// Values of --scaling.
const (
	strong = "strong"
	weak   = "weak"
	both   = "both"
)

// options are the flags of bench.
type options struct {
	settings settings.Settings
	data     string      // where the data are; "" for built-in pictures
	model    algo.Config // of the method
	own      *setting.Set
	preset   string

	ranks      []int
	scaling    string
	confidence float64
	maxTime    time.Duration

	predict  []int
	perHost  int
	fitTime  time.Duration
	fitUpTo  int
	check    bool
	linkGbit float64
	linkUS   float64
	from     string

	out, json, picture string

	how             computed.Flags
	nproc, prefetch int
}

func (o *options) define(fs *pflag.FlagSet, at chosen.Start) {
	o.model, o.own = at.Define(fs, &o.settings, &o.preset)
	fs.StringVar(&o.data, "data", "", "data set, as for train, whose loading is then measured too; without it, built-in pictures of the size that the networks take, drawn before")

	fs.IntSliceVar(&o.ranks, "ranks", nil, "numbers of ranks that take turns; without it, the powers of two up to all ranks, and all")
	fs.StringVar(&o.scaling, "scaling", both, "strong, weak or both")
	fs.Float64Var(&o.confidence, "confidence", 2, "measure until the median step is known to so many percent either way, at 95 % confidence")
	fs.DurationVar(&o.maxTime, "max-time", time.Minute, "most time for that")

	fs.IntSliceVar(&o.predict, "predict", []int{16, 64, 512, 10000}, "numbers of ranks to predict")
	fs.IntVar(&o.perHost, "ranks-per-host", 8, "ranks on each host there, a processor for each thread of theirs")
	fs.DurationVar(&o.fitTime, "fit-time", 100*time.Millisecond, "most time for each size of a collective; 0 fits and predicts nothing")
	fs.IntVar(&o.fitUpTo, "fit-up-to", 0, "fit on numbers of ranks up to this; 0 is all, and for --check half of the largest")
	fs.BoolVar(&o.check, "check", false, "predict also the numbers of ranks that were measured and not fitted on, and print the error")
	fs.Float64Var(&o.linkGbit, "link-gbit", 0, "assume a link of so many Gbit/s in each direction between hosts, not what was measured")
	fs.Float64Var(&o.linkUS, "link-us", 0, "assume a latency of so many microseconds between hosts, not what was measured")
	fs.StringVar(&o.from, "from", "", "measure nothing: predict from this report `FILE` of --json")

	fs.StringVar(&o.out, "out", "", "write bench.json and bench.png into this directory")
	fs.StringVar(&o.json, "json", "", "write all that was measured to this `FILE`")
	fs.StringVar(&o.picture, "picture", "", "draw the efficiency into this PNG `FILE`")

	fs.IntVar(&o.nproc, "nproc", 0, "ranks on this machine; 0 is one, or those that ddplaunch has started")
	o.how.Define(fs)
	fs.IntVar(&o.prefetch, "prefetch", 2, "batches loaded ahead")
}

// parse reads the command line: --algo, --preset and --net first, which decide what other
// flags there are, as for train.
func parse(args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	names := chosen.PeekNames(args)
	if names.Algo == chosen.ListAll {
		return nil, nil, chosen.ListMethods(out)
	}
	at, err := names.Begin()
	if err != nil {
		return nil, nil, err
	}
	o, fs, err := parseNew(at, names.Algo, args, out)
	return o, fs, cliflag.Within(at.Help, err)
}

// parseNew is parse once it is known where it starts.
func parseNew(at chosen.Start, method string, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	o, fs := &options{}, pflag.NewFlagSet("bench", pflag.ContinueOnError)
	o.define(fs, at)
	if err := chosen.Elsewhere(at.Method.Name, program(o.own.All()).Parse(fs, args, out)); err != nil {
		return nil, nil, err
	}
	if err := at.Check(o.settings); err != nil {
		return nil, nil, err
	}
	if o.preset == chosen.ListAll {
		return nil, nil, chosen.ListPresets(method, out)
	}
	if o.out != "" {
		for _, f := range []struct {
			to   *string
			name string
		}{{&o.json, "bench.json"}, {&o.picture, "bench.png"}} {
			if *f.to == "" {
				*f.to = filepath.Join(o.out, f.name)
			}
		}
	}
	return o, fs, cliflag.AsUsage(cmp.Or(o.unread(fs), o.validate()))
}

// ofReports are the flags that --from reads: of what is predicted, and of outputs.
var ofReports = []string{"from", "predict", "scaling", "check", "ranks-per-host", "link-gbit", "link-us", "out", "json", "picture"}

// unread reports flags beside --from that it does not read: they are of measuring.
func (o *options) unread(fs *pflag.FlagSet) error {
	if o.from == "" {
		return nil
	}
	var more []string
	fs.Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofReports, f.Name) {
			more = append(more, "--"+f.Name)
		}
	})
	if len(more) > 0 {
		return fmt.Errorf("--from %s measures nothing and does not read %s: leave it out, or leave out --from and measure", o.from, strings.Join(more, ", "))
	}
	return nil
}

// validate reports the first mistake that needs neither data nor ranks.
func (o *options) validate() error {
	if !slices.Contains([]string{strong, weak, both}, o.scaling) {
		return fmt.Errorf("unknown --scaling %q: want strong, weak or both", o.scaling)
	}
	err := cmp.Or(
		setting.InRange("batch", o.settings.Batch, 1, 1<<30),
		eachInRange("ranks", o.ranks, 1, 4096),
		eachInRange("predict", o.predict, 1, 1<<20),
		setting.InRange("ranks-per-host", o.perHost, 1, 4096),
		setting.InRange("fit-up-to", o.fitUpTo, 0, 4096),
		setting.InRange("nproc", o.nproc, 0, 1024),
		setting.InRange("prefetch", o.prefetch, 0, 1<<10),
	)
	switch {
	case err != nil:
		return err
	case !(o.confidence > 0):
		return fmt.Errorf("want --confidence above 0, in percent, got %v", o.confidence)
	case o.maxTime <= 0 || o.fitTime < 0:
		return fmt.Errorf("want --max-time above 0 and --fit-time of at least 0, got %v and %v", o.maxTime, o.fitTime)
	case !(o.linkGbit == 0 || o.linkGbit >= 1e-6 && o.linkGbit <= 1e9) || !(o.linkUS >= 0 && o.linkUS <= 1e9):
		return fmt.Errorf("want --link-gbit from 1e-6 to 1e9, or 0, and --link-us from 0 to 1e9, got %v and %v", o.linkGbit, o.linkUS)
	case o.check && o.fitTime == 0:
		return errors.New("--check predicts, and --fit-time 0 fits nothing to predict from: leave one of them out")
	}
	return errors.Join(o.own.Finish(), o.how.Check())
}

// eachInRange reports the first number of a list that is out of its range.
func eachInRange(name string, list []int, least, most int) error {
	for _, n := range list {
		if err := setting.InRange(name, n, least, most); err != nil {
			return err
		}
	}
	return nil
}

// list is numbers in a sentence: "1, 2, 4".
func list(v []int) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = strconv.Itoa(x)
	}
	return strings.Join(s, ", ")
}
