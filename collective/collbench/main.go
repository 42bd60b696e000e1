// Command collbench times collectives between processes that it starts
// itself, and checks their results while it does.
//
//	collbench -nproc 2 --sizes 4K,256K,4M,64M
//
// It prints the columns of nccl-tests, or one JSON object per line. Bandwidth
// is in GB/s: algbw is size over time, busbw is algbw times what the
// collective must move for each byte, 2(n-1)/n for an all-reduce.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/collective"
	"ebtrain/launch/cliflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	os.Exit(cliflag.Exit("collbench", err, os.Stderr))
}

// program is what --help shows of collbench besides the flags themselves.
var program = cliflag.Program{
	Name: "collbench",
	About: `collbench times collectives between processes that it starts itself, and checks
their results while it does.

  collbench -nproc 2 --sizes 4K,256K,4M,64M
  collbench -nproc 4 --hosts 2 --collective reduce-scatter --dtype bf16 --json

It prints the columns of nccl-tests. Bandwidth is in GB/s: algbw is size over
time, busbw is algbw times what the collective must move for each byte, which is
2(n-1)/n for an all-reduce.
`,
	Groups: []cliflag.Group{
		{Title: "Ranks", Flags: []string{"nproc", "hosts"}},
		{Title: "What is timed", Flags: []string{"collective", "sizes", "dtype", "memory"}},
		{Title: "How long", Flags: []string{"iters", "max-time"}},
		{Title: "Outputs", Flags: []string{"json"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

// run is the command. With rankEnv set it is one of the ranks.
func run(ctx context.Context, args []string) error {
	opt, err := parse(args, os.Stdout)
	if err != nil {
		return err
	}
	if rank := os.Getenv(rankEnv); rank != "" {
		return runRank(ctx, opt, rank)
	}
	return spawn(ctx, opt, args)
}

// options are the flags, checked.
type options struct {
	nproc, hosts int
	sizes        []int
	kind         collective.Kind
	dtype        collective.DType
	op           collective.Op
	memory       string
	iters        int
	maxTime      time.Duration
	json         bool
}

var kinds = map[string]collective.Kind{
	"all-reduce": collective.AllReduce, "reduce-scatter": collective.ReduceScatter,
	"all-gather": collective.AllGather, "broadcast": collective.Broadcast,
}

var dtypes = map[string]collective.DType{"f32": collective.F32, "f64": collective.F64, "bf16": collective.BF16}

func parse(args []string, stdout io.Writer) (options, error) {
	opt := options{op: collective.Sum}
	flags := pflag.NewFlagSet("collbench", pflag.ContinueOnError)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	flags.IntVar(&opt.nproc, "nproc", 2, "number of ranks, each a process")
	flags.IntVar(&opt.hosts, "hosts", 1, "number of hosts to pretend: ranks of different ones use TCP on loopback")
	sizes := flags.String("sizes", "4K,256K,4M,64M", "sizes in bytes, with K, M or G")
	kind := flags.String("collective", "all-reduce", "all-reduce, reduce-scatter, all-gather or broadcast")
	dtype := flags.String("dtype", "f32", "f32, f64 or bf16")
	flags.StringVar(&opt.memory, "memory", "alloc", "alloc: reduced where it lies; ordinary: copied in and out")
	flags.IntVar(&opt.iters, "iters", 2000, "most repetitions for a size")
	flags.DurationVar(&opt.maxTime, "max-time", 2*time.Second, "most time for a size")
	flags.BoolVar(&opt.json, "json", false, "print one JSON object per line")
	if err := program.Parse(flags, args, stdout); err != nil {
		return opt, err
	}
	var ok bool
	if opt.kind, ok = kinds[*kind]; !ok {
		return opt, cliflag.Usage("--collective is %q, expected all-reduce, reduce-scatter, all-gather or broadcast", *kind)
	}
	if opt.dtype, ok = dtypes[*dtype]; !ok {
		return opt, cliflag.Usage("--dtype is %q, expected f32, f64 or bf16", *dtype)
	}
	for _, s := range strings.Split(*sizes, ",") {
		n, err := parseSize(s)
		if err != nil {
			return opt, err
		}
		opt.sizes = append(opt.sizes, n)
	}
	return opt, opt.validate()
}

func (o options) validate() error {
	switch {
	case o.nproc < 1 || o.nproc > 256:
		return cliflag.Usage("--nproc is %d, expected 1 to 256", o.nproc)
	case o.hosts < 1 || o.hosts > o.nproc:
		return cliflag.Usage("--hosts is %d, expected 1 to %d, the number of ranks", o.hosts, o.nproc)
	case o.memory != "alloc" && o.memory != "ordinary":
		return cliflag.Usage("--memory is %q, expected alloc or ordinary", o.memory)
	case o.iters < 1:
		return cliflag.Usage("--iters is %d, expected at least 1", o.iters)
	case o.maxTime <= 0:
		return cliflag.Usage("--max-time is %v, expected more than 0", o.maxTime)
	}
	return nil
}

func parseSize(s string) (int, error) {
	digits, unit := s, 1
	for suffix, u := range map[string]int{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if d, ok := strings.CutSuffix(s, suffix); ok {
			digits, unit = d, u
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > (16<<30)/unit {
		return 0, cliflag.Usage("size %q in --sizes, expected bytes from 1 to 16G, such as 256K", s)
	}
	return n * unit, nil
}
