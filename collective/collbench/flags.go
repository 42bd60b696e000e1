package main

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/collective"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/netns"
)

// program is what --help shows of collbench besides the flags themselves.
var program = cliflag.Program{
	Name: "collbench",
	About: `collbench times collectives, checks their results while it does, and says how
far they are from what the machine can do.

  collbench -nproc 2 --sizes 4K,256K,4M,64M    two ranks, started here
  collbench -nproc 4 --network tcp             over TCP on loopback
  ddplaunch -nproc 2 collbench --max 64MB      the ranks of a launcher, on one
                                               host or, as for train, on several

A line for each size: the shortest and the median time, algbw (the size over
the shortest time, GB/s) and busbw (algbw times what must move for each byte,
2(n-1)/n for an all-reduce; left out where both of these follow). Beside it,
measured in between,

  floor    what all-reduces inside a host do at least: a loop that reads the
           vectors of all its ranks and writes all, from as many threads
  least    what those of up to 8 KB do at least, in which waiting counts: each
           rank copies its vector, raises a flag in a cache line of its own,
           looks at those of the others and sums; printed below the table
  stream   between hosts, a TCP connection that carries the size both ways at
           once

and what share of the median time those would take: 1 is as good as it gets.
Then latency and bandwidth, from the line time = latency + bytes/bandwidth
through the medians (robust least squares of relative errors), with 95 %
confidence, and what the times are above that line at each size.

  collbench -nproc 2 --network tcp --json two.json
  collbench -nproc 4 --network tcp --json four.json
  collbench -nproc 8 --network tcp --predict two.json,four.json

  make -C collective/collbench/peers deps all
  collbench --peers bin/peers --sizes 4K,256K,4M
  collbench --peers bin/peers -nproc 4 --network namespaces

measures other libraries beside it, size by size and in turn, and prints a table
in Markdown; "others" there is how many processors other programs used. With
namespaces each rank, of whichever library, is on a host of its own that is made
of them, behind a switch: what it sends goes over a virtual link, not loopback.
`,
	Groups: []cliflag.Group{
		{Title: "Ranks", Flags: []string{"nproc", "hosts", "network"}},
		{Title: "What is timed", Flags: []string{"collective", "max", "sizes", "dtype", "memory"}},
		{Title: "How long", Flags: []string{"iters", "max-time"}},
		{Title: "Beside others", Flags: []string{"peers", "rounds"}},
		{Title: "Outputs", Flags: []string{"json", "predict"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// options are the flags, checked.
type options struct {
	nproc, hosts int
	apart        bool // every rank is a host of its own,
	spaces       bool // which is made of namespaces
	sizes        []int
	kind         collective.Kind
	dtype        collective.DType
	op           collective.Op
	memory       string
	iters        int
	maxTime      time.Duration
	json         string
	predict      []string
	peers        string // the folder of their programs
	rounds       int

	said   map[string]bool   // the flags that were given
	values map[string]string // of all flags
}

var kinds = map[string]collective.Kind{
	"all-reduce": collective.AllReduce, "reduce-scatter": collective.ReduceScatter,
	"all-gather": collective.AllGather, "broadcast": collective.Broadcast,
}

var dtypes = map[string]collective.DType{"f32": collective.F32, "f64": collective.F64, "bf16": collective.BF16}

// namespaces is the value of --network for hosts made of them.
const namespaces = "namespaces"

// smallest is the size at which the powers of two up to --max begin.
const smallest = 8

func parse(args []string, stdout io.Writer) (options, error) {
	opt := options{op: collective.Sum, said: map[string]bool{}}
	flags := pflag.NewFlagSet("collbench", pflag.ContinueOnError)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	flags.IntVar(&opt.nproc, "nproc", 2, "number of ranks to start, each a process; under a launcher that has started them")
	flags.IntVar(&opt.hosts, "hosts", 1, "number of hosts to pretend: ranks of different ones use TCP on loopback")
	network := flags.String("network", "auto", "auto: shared memory within a host, TCP between hosts; tcp: TCP between all ranks; namespaces: the same, on hosts made of namespaces, by root")
	kind := flags.String("collective", "all-reduce", "all-reduce, reduce-scatter, all-gather or broadcast")
	most := flags.String("max", "64M", "largest `SIZE` in bytes, with K, M or G; all powers of two from 8 B to it are measured")
	sizes := flags.String("sizes", "", "these `SIZES` instead, such as 4K,256K,64M; each is rounded up to what the ranks can cut into equal parts")
	dtype := flags.String("dtype", "f32", "f32, f64 or bf16")
	flags.StringVar(&opt.memory, "memory", "alloc", "alloc: reduced where it lies; ordinary: copied in and out")
	flags.IntVar(&opt.iters, "iters", 2000, "most repetitions for a size")
	flags.DurationVar(&opt.maxTime, "max-time", time.Second, "most time for a size, for each thing that is measured")
	flags.StringVar(&opt.json, "json", "", "also write all that was measured to this `FILE`")
	flags.StringSliceVar(&opt.predict, "predict", nil, "fit costs to these `FILES` of --json, and print what they predict beside what is measured")
	flags.StringVar(&opt.peers, "peers", "", "compare all-reduces with OpenMPI's and gloo's, whose programs are in this `FOLDER` (see above)")
	flags.IntVar(&opt.rounds, "rounds", 5, "with --peers, how often each is measured at each size, in turn")
	if err := program.Parse(flags, args, stdout); err != nil {
		return opt, err
	}
	flags.Visit(func(f *pflag.Flag) { opt.said[f.Name] = true })
	opt.values = cliflag.Values(flags)
	var ok bool
	if opt.kind, ok = kinds[*kind]; !ok {
		return opt, cliflag.Usage("--collective is %q, expected all-reduce, reduce-scatter, all-gather or broadcast", *kind)
	}
	if opt.dtype, ok = dtypes[*dtype]; !ok {
		return opt, cliflag.Usage("--dtype is %q, expected f32, f64 or bf16", *dtype)
	}
	opt.spaces = *network == namespaces
	if opt.apart = opt.spaces || *network == "tcp"; !opt.apart && *network != "auto" {
		return opt, cliflag.Usage("--network is %q, expected auto, tcp or namespaces", *network)
	}
	if err := opt.parseSizes(*most, *sizes); err != nil {
		return opt, err
	}
	return opt, opt.validate()
}

func (o options) validate() error {
	switch {
	case o.spaces && o.nproc > netns.Most:
		return cliflag.Usage("--nproc is %d, expected at most %d hosts of namespaces", o.nproc, netns.Most)
	case o.nproc == 1:
		return cliflag.Usage("--nproc is 1, expected at least 2: one rank has nobody to exchange anything with")
	case o.nproc < 1 || o.nproc > 256:
		return cliflag.Usage("--nproc is %d, expected 2 to 256", o.nproc)
	case o.hosts < 1 || o.hosts > o.nproc:
		return cliflag.Usage("--hosts is %d, expected 1 to %d, the number of ranks", o.hosts, o.nproc)
	case o.apart && o.said["hosts"]:
		return cliflag.Usage("--hosts %d and --network %s, which makes each rank a host: give one of them", o.hosts, o.values["network"])
	case o.memory != "alloc" && o.memory != "ordinary":
		return cliflag.Usage("--memory is %q, expected alloc or ordinary", o.memory)
	case len(o.predict) > 0 && (o.kind != collective.AllReduce || o.dtype != collective.F32 || o.memory != "alloc"):
		return cliflag.Usage("--predict is for all-reduces of f32 in alloc memory, whose costs can be fitted: leave out --collective, --dtype and --memory")
	case o.iters < 1:
		return cliflag.Usage("--iters is %d, expected at least 1", o.iters)
	case o.maxTime <= 0:
		return cliflag.Usage("--max-time is %v, expected more than 0", o.maxTime)
	}
	return o.peered()
}

// parseSizes fills sizes: a list, or the powers of two up to the largest and it.
func (o *options) parseSizes(most, list string) error {
	if o.said["sizes"] {
		if o.said["max"] {
			return cliflag.Usage("--max %s and --sizes %s: give one of them", most, list)
		}
		for _, s := range strings.Split(list, ",") {
			n, err := parseSize("sizes", s)
			if err != nil {
				return err
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	}
	last, err := parseSize("max", most)
	if err != nil {
		return err
	}
	if last < smallest {
		return cliflag.Usage("--max is %s, expected at least %d bytes, where sizes begin (or give --sizes)", most, smallest)
	}
	for n := smallest; n < last; n *= 2 {
		o.sizes = append(o.sizes, n)
	}
	o.sizes = append(o.sizes, last)
	return nil
}

// units are what may follow the digits of a size, without a B or iB behind it.
var units = map[string]int{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

// parseSize reads 64M, 64MB, 64MiB, 64m or a plain number of bytes.
func parseSize(flag, s string) (int, error) {
	digits := strings.TrimRight(s, "KMGBkmgbi")
	suffix := strings.ToUpper(s[len(digits):])
	unit, ok := units[suffix]
	for _, end := range []string{"IB", "B"} {
		if u, is := units[strings.TrimSuffix(suffix, end)]; !ok && is && strings.HasSuffix(suffix, end) && suffix != "IB" {
			unit, ok = u, true
		}
	}
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > (16<<30)/unit {
		return 0, cliflag.Usage("--%s: %q is not a size, expected bytes from 1 to 16G, such as 256K or 64MB", flag, s)
	}
	return n * unit, nil
}

// whole is the sizes as n ranks can cut them into equal parts of whole elements:
// rounded up, each once.
func (o options) whole(n int) []int {
	unit := o.dtype.Size() * n
	var out []int
	for _, s := range o.sizes {
		if up := (s + unit - 1) / unit * unit; !slices.Contains(out, up) {
			out = append(out, up)
		}
	}
	return out
}
