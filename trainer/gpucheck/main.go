// Command gpucheck shows on a machine with an NVIDIA GPU what the doubles of the tests
// cannot, in one binary that is carried there. See --help.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/collective/colltest"
	driver "ebtrain/collective/cuda"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/method/bidvl"
)

func main() {
	colltest.Main(openProcess) // where this process is a rank of that suite
	ctx, end := cliflag.UntilSignal(context.Background(), "the report has what was done")
	err := end(run(ctx, os.Args[1:], os.Stdout))
	os.Exit(cliflag.Exit("gpucheck", err, os.Stderr))
}

// options are the flags.
type options struct {
	out     string
	parts   []string
	limit   time.Duration
	nets    []string
	batches []int
	only    []string // precisions
	lanes   int
	body    bool
	steps   int
	peer    string
	each    time.Duration
	worker  string
	from    int // the process that does checks: which are done already; -1: the one above it
	size    size
}

// size is how large the checks are.
type size struct {
	Graphs   int           // random ones of the suite of backends, for each type; 0: without that suite
	Programs int           // random ones at most; 0: without them
	Hunt     time.Duration // after which no new random program begins
	Copied   int64         // bytes
	Fused    int           // bytes of an array
	Placed   int           // images of the sums in several places
	Product  int           // rows and columns
	Images   []int         // batches of convolutions of few channels
	Width    int           // of part d's networks, 0 is the paper's
}

// program is what --help shows.
var program = cliflag.Program{
	Name: "gpucheck",
	About: `gpucheck shows on a machine with an NVIDIA GPU what tests without one cannot.

  gpucheck --out results                            all parts
  gpucheck --out results --part c,d --limit 9m

  a  versions; our constants and layouts compiled against the headers that are
     there
  b  ranks that share the GPU, by NCCL and staged; a rank that is killed, one
     that aborts; the conformance suites, that of backends under
     compute-sanitizer, too
  c  captured steps against single ones; losses against the CPU's, gradients
     against the reference's
  d  speed: steps of the networks in three precisions, beside PyTorch, and the
     machine's rates; kernels for images of few channels, which are held to
     plain ones, too

What is found is written after each check, as text and as JSON, so a run that is
cut off leaves what it had. The checks are done by a process of their own, and by
a new one after each that fails, hangs or crashes: what they put out is in
log.txt. The exit code is 1 if a check failed, or where there is no GPU.
`,
	Groups: []cliflag.Group{
		{Title: "What", Flags: []string{"part", "net", "batch", "precision", "lanes", "body", "steps", "peer"}},
		{Title: "How", Flags: []string{"out", "limit", "each"}},
	},
}

// full is for GPUs. Tests on doubles have less.
var full = size{Graphs: 20, Programs: 1000, Hunt: 45 * time.Second, Copied: 1 << 30, Fused: 256 << 20, Placed: 256, Product: 8192, Images: []int{64, 256}}

func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{size: full}
	fs := pflag.NewFlagSet("gpucheck", pflag.ContinueOnError)
	fs.StringVar(&o.out, "out", "gpu-results", "folder for the results, made if need be")
	fs.StringSliceVar(&o.parts, "part", []string{"a", "b", "c", "d"}, "parts to do")
	fs.DurationVar(&o.limit, "limit", 10*time.Minute, "time after which no new check begins, and what is under way is cut off")
	fs.StringSliceVar(&o.nets, "net", []string{"conv32", "conv64", "resnet128"}, "networks of part d")
	fs.IntSliceVar(&o.batches, "batch", []int{36, 64, 256}, "batches of part d")
	fs.StringSliceVar(&o.only, "precision", []string{"bf16", "tf32", "f32"}, "precisions of part d's networks")
	fs.IntVar(&o.lanes, "lanes", 0, "streams that a step of part d is spread over, 0 is the default")
	fs.BoolVar(&o.body, "body", true, "parts c and d also replay steps as the body of one node of a graph")
	fs.IntVar(&o.steps, "steps", 30, "timed steps of part d")
	fs.StringVar(&o.peer, "peer", "", "PyTorch program of BiDVL's step to be timed beside, no part of this repository: it takes --model, --batch, --iters, --modes and --cudagraphs, and prints a line of JSON with step_ms")
	fs.DurationVar(&o.each, "each", 5*time.Minute, "time after which a check has failed, and is killed")
	fs.StringVar(&o.worker, "worker", "", "internal: be a rank of part b")
	fs.IntVar(&o.from, "from", -1, "internal: do the checks but for so many")
	text := fs.String("size", "", "internal: how large the checks are")
	for _, name := range []string{"worker", "from", "size"} {
		if err := fs.MarkHidden(name); err != nil {
			return nil, err
		}
	}
	if err := program.Parse(fs, args, stdout); err != nil {
		return nil, err
	}
	if *text != "" {
		if err := json.Unmarshal([]byte(*text), &o.size); err != nil {
			return nil, &cliflag.UsageError{Err: err}
		}
	}
	for _, p := range o.parts {
		if !slices.Contains([]string{"a", "b", "c", "d"}, p) {
			return nil, cliflag.Usage("unknown --part %q: want some of a, b, c, d", p)
		}
	}
	for _, p := range o.only {
		if !slices.Contains([]string{"bf16", "tf32", "f32"}, p) {
			return nil, cliflag.Usage("unknown --precision %q: want some of bf16, tf32, f32", p)
		}
	}
	for _, net := range o.nets {
		if _, err := bidvl.PresetFor(net); err != nil {
			return nil, cliflag.Usage("--net: %w", err)
		}
	}
	for _, n := range o.batches {
		if n < 1 {
			return nil, cliflag.Usage("want a --batch of at least 1, got %d", n)
		}
	}
	if o.lanes < 0 {
		return nil, cliflag.Usage("want --lanes of at least 1, or 0 for the default, got %d", o.lanes)
	}
	if o.limit <= 0 || o.each <= 0 || o.steps < 2 { // the first step's time is no measure
		return nil, cliflag.Usage("want --limit and --each above 0 and --steps of at least 2, got %v, %v and %d", o.limit, o.each, o.steps)
	}
	return o, nil
}

// run is the program, without the process around it.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if errors.Is(err, cliflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return check(ctx, o, stdout)
}

// check does what the options say.
func check(ctx context.Context, o *options, stdout io.Writer) error {
	if o.worker != "" {
		return work(ctx, o.worker, stdout)
	}
	list, err := driver.Devices()
	if err != nil {
		return fmt.Errorf("there is no GPU to check: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("--limit %v is over", o.limit))
	defer cancel()
	if o.from >= 0 {
		return doChecks(ctx, o, list)
	}
	if err := keepKernels(); err != nil {
		return err
	}
	r, err := newReport(o.out, list, stdout)
	if err != nil {
		return err
	}
	if err := supervise(ctx, o, r, o.child(ctx)); err != nil {
		return err
	}
	if bad := r.failed(); len(bad) > 0 {
		return fmt.Errorf("%d checks failed: %s", len(bad), strings.Join(bad, ", "))
	}
	return nil
}

// keepKernels gives compiled kernels a folder where the user has none for such: or each of
// many processes would compile them all.
func keepKernels() error {
	if _, err := os.UserCacheDir(); err == nil || os.Getenv(driver.CacheVariable) != "" {
		return nil
	}
	return os.Setenv(driver.CacheVariable, filepath.Join(os.TempDir(), "gpucheck-kernels"))
}

// doChecks does the checks from one on, until one fails, and tells the process above.
func doChecks(ctx context.Context, o *options, list []driver.Info) error {
	syscall.CloseOnExec(messages) // it is not for ranks
	out := json.NewEncoder(os.NewFile(messages, "messages"))
	r := &report{from: o.from, tell: func(m message) error { return out.Encode(m) }}
	if err := r.read(o.out); err != nil {
		return err
	}
	r.Devices = list
	parts := map[string]func(context.Context, *options, *report) error{"a": versions, "b": suites, "c": exactness, "d": speed}
	for _, p := range o.parts {
		if err := parts[p](ctx, o, r); err != nil {
			return err
		}
	}
	if r.ended {
		return nil
	}
	return r.tell(message{Over: true})
}
