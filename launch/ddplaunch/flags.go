package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/supervise"
)

// program is what --help shows of ddplaunch besides the flags themselves.
var program = cliflag.Program{
	Name: "ddplaunch",
	About: `ddplaunch starts a program once per rank and looks after the processes.

  ddplaunch [flags] PROGRAM [the program's own flags]

  ddplaunch -nproc 2 train --data synth --out runs/a   two ranks on this machine
  ddplaunch -nproc gpu train ...                       one rank per GPU
  ddplaunch -nproc 2 --log-dir logs ./my-program ...   and logs/rank-N.log

Several machines: give each the same secret in EBTRAIN_KEY, and run

  ddplaunch --nnodes 2 --node-rank 0 --rdzv-endpoint node01:29400 \
      -nproc 8 train ...                               on node01
  ddplaunch --nnodes 2 --node-rank 1 --join node01:29400 \
      -nproc 8 train ...                               on the other

A program without a slash is looked for beside ddplaunch, then on PATH. Long
flags work with one dash or two, and with - or _. Ctrl-C asks the ranks to stop;
a second Ctrl-C kills them. The exit code is that of the rank that failed first:
128+n for signal n, 75 if all stopped cleanly before the end.
`,
	Groups: []cliflag.Group{
		{Title: "Ranks", Flags: []string{"nproc-per-node", "max-restarts", "stuck-after", "grace", "signals-to-handle"}},
		{Title: "Several machines", Flags: []string{"nnodes", "node-rank", "rdzv-endpoint", "join", "rdzv-id", "rdzv-timeout", "standalone"}},
		{Title: "Output", Flags: []string{"log-dir", "redirects", "tee", "local-ranks-filter", "verbose"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
	Args: "PROGRAM", Stops: true,
}

// options are the command line, parsed and checked.
type options struct {
	nproc       int
	nodes       int // at most
	least       int // nodes that suffice; nodes if their number is fixed
	nodeRank    int // -1 for any
	endpoint    string
	joins       bool // endpoint was given as --join
	runID       string
	joinWait    time.Duration
	maxRestarts int
	grace       time.Duration
	stuckAfter  time.Duration // 0 for never
	output      supervise.Output
	signals     []os.Signal
	verbose     bool

	program string
	args    []string
}

// raw are the flags as typed.
type raw struct {
	nnodes, nproc, nodeRank, endpoint, join, runID, joinWait, grace string
	stuckAfter                                                      string
	logDir, redirects, tee, filter, signals                         string
	maxRestarts                                                     int
	standalone, verbose                                             bool
}

func flagSet(r *raw) *pflag.FlagSet {
	fs := pflag.NewFlagSet("ddplaunch", pflag.ContinueOnError)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "nproc" {
			name = "nproc-per-node"
		}
		return pflag.NormalizedName(name)
	})
	fs.StringVar(&r.nproc, "nproc-per-node", "1", "ranks on this node: a number, gpu, cpu, or auto (GPUs, else 1); short: -nproc")
	fs.StringVar(&r.nnodes, "nnodes", "1", "number of nodes, or 2:4 for 2 to 4: the job goes on without those that are lost, and takes in those that come")
	fs.StringVar(&r.nodeRank, "node-rank", "", "this node's number; node 0 coordinates (default 0, or any with --join)")
	fs.StringVar(&r.endpoint, "rdzv-endpoint", "", "host:port of node 0; node 0 itself may leave it out and is given a free port")
	fs.StringVar(&r.join, "join", "", "host:port of node 0, on any other node")
	fs.StringVar(&r.runID, "rdzv-id", "", "name of the job, the same on all nodes")
	fs.BoolVar(&r.standalone, "standalone", false, "one node, no network (the default with one node)")
	fs.StringVar(&r.joinWait, "rdzv-timeout", "600s", "how long to wait for all nodes")
	fs.IntVar(&r.maxRestarts, "max-restarts", 0, "how often to start all ranks again after a failure")
	fs.StringVar(&r.grace, "grace", "10s", "how long ranks may take to stop when asked to")
	fs.StringVar(&r.stuckAfter, "stuck-after", "30s", "on node 0: end the job if others wait that long for a rank that shows no sign of life; 0 for never, as for a debugger")
	fs.StringVar(&r.logDir, "log-dir", "", "write rank-N.log for every rank here")
	fs.StringVarP(&r.redirects, "redirects", "r", "0", "streams for the log only: 0 none, 1 stdout, 2 stderr, 3 both, or 0:1,1:3 by local rank")
	fs.StringVarP(&r.tee, "tee", "t", "", "streams for the log and the console (default 3 with --log-dir)")
	fs.StringVar(&r.filter, "local-ranks-filter", "", "show only these local ranks, for example 0,1")
	fs.StringVar(&r.signals, "signals-to-handle", "SIGINT,SIGTERM,SIGHUP,SIGUSR1", "signals that ask the ranks to stop")
	fs.BoolVarP(&r.verbose, "verbose", "v", false, "log what the launcher does")
	return fs
}

// parse reads the command line, and answers --help and --version on stdout. Any
// other error is a *cliflag.UsageError.
func parse(args []string, stdout io.Writer) (options, error) {
	var r raw
	fs := flagSet(&r)
	if err := program.Parse(fs, args, stdout); err != nil {
		return options{}, err
	}
	o := options{maxRestarts: r.maxRestarts, runID: r.runID, verbose: r.verbose}
	for _, step := range []func(*options, raw, *pflag.FlagSet) error{parseNodes, parseWaits, parseOutput, parseSignals, parseProgram} {
		if err := step(&o, r, fs); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

func parseNodes(o *options, r raw, fs *pflag.FlagSet) error {
	var err error
	if o.least, o.nodes, err = parseSpan(r.nnodes); err != nil {
		return err
	}
	if o.nproc, err = countProcs(r.nproc, os.Environ()); err != nil {
		return err
	}
	if err := parseEndpoint(o, r); err != nil {
		return err
	}
	o.nodeRank = 0
	if o.joins {
		o.nodeRank = -1
	}
	if r.nodeRank != "" {
		if o.nodeRank, err = strconv.Atoi(r.nodeRank); err != nil || o.nodeRank < 0 {
			return cliflag.Usage("--node-rank %q: want this node's number, 0 to %d", r.nodeRank, o.nodes-1)
		}
	}
	switch {
	case o.nodeRank >= o.nodes:
		return cliflag.Usage("--node-rank %d is not below --nnodes %d", o.nodeRank, o.nodes)
	case o.nodeRank == 0 && o.joins:
		return cliflag.Usage("--node-rank 0 is the node that others join: give it --rdzv-endpoint, not --join")
	case o.nodeRank > 0 && o.endpoint == "":
		return cliflag.Usage("--node-rank %d needs the address of node 0: --join HOST:PORT", o.nodeRank)
	case o.nodes > 1 && !fs.Changed("node-rank") && !o.joins:
		return cliflag.Usage("--nnodes %d: give --node-rank 0 on one node, and --join HOST:PORT on the others", o.nodes)
	case r.maxRestarts < 0:
		return cliflag.Usage("--max-restarts %d: want 0 or more", r.maxRestarts)
	}
	return nil
}

// parseSpan reads "4" or "2:4", a least and a largest number of nodes.
func parseSpan(s string) (least, most int, err error) {
	low, high, ranged := strings.Cut(s, ":")
	if !ranged {
		high = low
	}
	least, err1 := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || least < 1 || most < least {
		return 0, 0, cliflag.Usage("--nnodes %q: want a number of nodes, at least 1, or a least and a largest number, as in 2:4", s)
	}
	return least, most, nil
}

func parseEndpoint(o *options, r raw) error {
	if r.join != "" && r.endpoint != "" {
		return cliflag.Usage("--join and --rdzv-endpoint are the same address: give one of them")
	}
	o.endpoint, o.joins = r.endpoint, r.join != ""
	if o.joins {
		o.endpoint = r.join
	}
	if o.endpoint == "" {
		return nil
	}
	if r.standalone || o.nodes == 1 {
		return cliflag.Usage("an address of node 0 (%s) makes no sense with one node: leave it out, or give --nnodes", o.endpoint)
	}
	host, port, err := net.SplitHostPort(o.endpoint)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 0 || n > 65535 || host == "" || o.joins && n == 0 {
		return cliflag.Usage("address %q: want HOST:PORT, for example node01:29400 or [fd00::1]:29400", o.endpoint)
	}
	return nil
}

func parseWaits(o *options, r raw, _ *pflag.FlagSet) error {
	var err error
	if o.grace, err = parseWait("grace", r.grace); err != nil {
		return err
	}
	if o.joinWait, err = parseWait("rdzv-timeout", r.joinWait); err != nil {
		return err
	}
	if r.stuckAfter != "0" && r.stuckAfter != "0s" {
		if o.stuckAfter, err = parseWait("stuck-after", r.stuckAfter); err != nil {
			return err
		}
	}
	if r.standalone && o.nodes > 1 {
		return cliflag.Usage("--standalone means one node, --nnodes says %d", o.nodes)
	}
	return nil
}

// parseWait reads "10s", "1m30s" or a bare number of seconds.
func parseWait(flag, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseFloat(s, 64); nerr == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d <= 0 {
		return 0, cliflag.Usage("--%s %q: want a time above zero, for example 10s or 2m", flag, s)
	}
	return d, nil
}

func parseOutput(o *options, r raw, fs *pflag.FlagSet) error {
	var err error
	if o.output.Redirect, err = supervise.ParseStreams(r.redirects); err != nil {
		return cliflag.Usage("--redirects %w", err)
	}
	switch {
	case fs.Changed("tee"):
		if o.output.Tee, err = supervise.ParseStreams(r.tee); err != nil {
			return cliflag.Usage("--tee %w", err)
		}
	case r.logDir != "" && !fs.Changed("redirects"):
		o.output.Tee = supervise.Streams{All: 3}
	}
	if r.logDir == "" && (fs.Changed("redirects") || fs.Changed("tee")) {
		return cliflag.Usage("--redirects and --tee need --log-dir")
	}
	o.output.Dir = r.logDir
	if r.filter == "" {
		return nil
	}
	for part := range strings.SplitSeq(r.filter, ",") {
		local, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || local < 0 || local >= o.nproc {
			return cliflag.Usage("--local-ranks-filter %q: want local ranks from 0 to %d, for example 0,1", r.filter, o.nproc-1)
		}
		o.output.Filter = append(o.output.Filter, local)
	}
	return nil
}

func parseSignals(o *options, r raw, _ *pflag.FlagSet) error {
	for name := range strings.SplitSeq(r.signals, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		s := unix.SignalNum(name)
		if s == 0 || slices.Contains([]unix.Signal{unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGPIPE, unix.SIGURG}, s) {
			return cliflag.Usage("--signals-to-handle: %q is not a signal that can be handled", name)
		}
		o.signals = append(o.signals, s)
	}
	return nil
}

func parseProgram(o *options, _ raw, fs *pflag.FlagSet) error {
	if fs.NArg() == 0 {
		return cliflag.Usage("no program to start: ddplaunch -nproc 2 train ...")
	}
	o.args = fs.Args()[1:]
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where this program lies: %w", err)
	}
	dir := self[:strings.LastIndexByte(self, '/')]
	if o.program, err = supervise.LookProgram(fs.Arg(0), dir, os.Getenv("PATH")); err != nil {
		return cliflag.AsUsage(err)
	}
	return nil
}
