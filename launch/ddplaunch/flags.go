package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"ebtrain/launch/binding"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/launcher"
	"ebtrain/launch/supervise"
)

// program is what --help shows of ddplaunch besides the flags themselves.
var program = cliflag.Program{
	Name: "ddplaunch",
	About: `ddplaunch starts a program once per rank and looks after the processes.

  ddplaunch [flags] PROGRAM [the program's own flags]

  ddplaunch -nproc 2 train --width 16 --out runs/a     two ranks on this machine
  ddplaunch -nproc gpu train ...                       one rank per GPU
  ddplaunch -nproc 2 --log-dir logs ./my-program ...   and logs/rank-N.out

Several machines: give each the same secret in EBTRAIN_KEY, or in a file, and
run on node01, and then on the other,

  ddplaunch --nnodes 2 --node-rank 0 --key-file key -nproc 8 train ...
  ddplaunch --nnodes 2 --join node01 --key-file key -nproc 8 train ...

Under Slurm there is nothing to say, nor under mpiexec of MPICH; one ddplaunch
runs on each node. mpirun of Open MPI passes the secret and the first host on:

  srun --mpi=pmi2 ddplaunch -nproc gpu train ...
  mpirun -npernode 1 --bind-to none -x EBTRAIN_KEY -x MASTER_ADDR=node01 \
    ddplaunch ...

A program without a slash is looked for beside ddplaunch, then on PATH. Long
flags work with one dash or two, and with - or _. Ctrl-C asks the ranks to stop;
a second Ctrl-C kills them. The exit code is that of the rank that failed first:
128+n for signal n, also where a Go program dies of it with a trace and 2; 1 for
a panic; 75 if all stopped cleanly before the end.

SIGUSR2 to ddplaunch or a rank shows what all ranks did last, and who lags. With
--nnodes 2:4 the job goes on without nodes that are lost, from its checkpoint,
and takes in nodes that come later; if node 0 is lost, it ends with 75.
`,
	Groups: []cliflag.Group{
		{Title: "Ranks", Flags: []string{"nproc-per-node", "numa-binding", "max-restarts", "stuck-after", "grace", "stop-before", "signals-to-handle"}},
		{Title: "Several machines", Flags: []string{"nnodes", "node-rank", "rdzv-endpoint", "join", "key-file", "rdzv-id", "rdzv-timeout", "network", "port-range", "standalone"}},
		{Title: "Output", Flags: []string{"log-dir", "redirects", "tee", "local-ranks-filter", "gather-output", "verbose"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
	Args: "PROGRAM", Stops: true,
}

// options are the command line, parsed and checked.
type options = launcher.Options

// raw are the flags as typed.
type raw struct {
	nnodes, nproc, numa, nodeRank, endpoint, join, runID, joinWait, grace string
	stuckAfter, stopBefore                                                string
	network, portRange, keyFile, key                                      string
	logDir, redirects, tee, filter, signals                               string
	maxRestarts                                                           int
	standalone, gather, verbose                                           bool

	environ []string
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
	fs.StringVar(&r.numa, "numa-binding", "none", "bind each rank to the processors near its GPU, or without GPUs to a share of the machine's nodes of processors and memory: node, socket (all nodes of a socket), exclusive (cores of the node that no other rank gets), or core-complex (those of the node that share a cache); none leaves it to the kernel")
	fs.StringVar(&r.nnodes, "nnodes", "1", "number of nodes, or 2:4 for 2 to 4: the job goes on without those that are lost, and takes in those that come")
	fs.StringVar(&r.nodeRank, "node-rank", "", "this node's number; node 0 coordinates (default 0, or any with --join)")
	fs.StringVar(&r.endpoint, "rdzv-endpoint", "", "host or host:port of node 0; node 0 itself may leave it out. Without a port, it is one of a few that come from the key")
	fs.StringVar(&r.join, "join", "", "host or host:port of node 0, on any other node")
	fs.StringVar(&r.keyFile, "key-file", "", "file with the job's secret that nobody else may read; instead of EBTRAIN_KEY")
	fs.StringVar(&r.key, "key", "", "")
	if err := fs.MarkHidden("key"); err != nil {
		panic(err) // it is defined above
	}
	fs.StringVar(&r.portRange, "port-range", "", "first and last port that launchers and ranks may listen on, A:B; any without it")
	fs.StringVar(&r.network, "network", "", "interface or prefix (ib0, 10.1.0.0/16) for the ranks' data; without it, that by which node 0 is reached")
	fs.StringVar(&r.runID, "rdzv-id", "", "name of the job, the same on all nodes; under Slurm that of the step, and under MPI of its job")
	fs.BoolVar(&r.standalone, "standalone", false, "one node, no network (the default with one node)")
	fs.StringVar(&r.joinWait, "rdzv-timeout", "600s", "how long to wait for all nodes")
	fs.IntVar(&r.maxRestarts, "max-restarts", 0, "how often to start all ranks again after a failure; not after an exit status of 2, a mistake on the command line")
	fs.StringVar(&r.grace, "grace", "10s", "how long ranks may take to stop when asked to, also for other nodes to join")
	fs.StringVar(&r.stopBefore, "stop-before", "60s", "under Slurm: ask the ranks to stop so long before the job's time ends, at most a tenth of it; 0 for never")
	fs.StringVar(&r.stuckAfter, "stuck-after", "30s", "on node 0: end the job if others wait that long for a rank that shows no sign of life; one that a signal has stopped ends it within 2s; 0 for never, as for a debugger")
	fs.StringVar(&r.logDir, "log-dir", "", "write here what every rank puts out, as rank-N.out, and the last collectives (flight.txt) and reasons (rank-N.error.json) of failures")
	fs.StringVarP(&r.redirects, "redirects", "r", "0", "streams for the log only: 0 none, 1 stdout, 2 stderr, 3 both, or 0:1,1:3 by local rank")
	fs.StringVarP(&r.tee, "tee", "t", "", "streams for the log and the console (default 3 with --log-dir; with -r too, what neither names is in no log)")
	fs.StringVar(&r.filter, "local-ranks-filter", "", "show only these local ranks, for example 0,1")
	fs.StringVar(&r.signals, "signals-to-handle", "SIGINT,SIGTERM,SIGHUP,SIGUSR1", "signals that ask the ranks to stop")
	fs.BoolVar(&r.gather, "gather-output", false, "on all nodes: node 0 shows the lines of all ranks, equal ones\nonce; the default under srun, mpiexec and mpirun, unless each task has a file")
	fs.BoolVarP(&r.verbose, "verbose", "v", false, "log what the launcher does")
	return fs
}

// meantRanks is err, and if it is an unknown flag like those that other launchers have for the
// number of ranks, says what it is called here.
func meantRanks(err error) error {
	unknown, ok := errors.AsType[*cliflag.UnknownFlagError](err)
	if ok && (unknown.Name == "n" || unknown.Name == "np" || cliflag.Meant(unknown.Name, []string{"nproc"}) != "") {
		unknown.Nearest = []string{"-nproc"}
	}
	return err
}

// parse reads the command line, and answers --help and --version on stdout. Any
// other error is a *cliflag.UsageError.
func parse(args, environ []string, stdout io.Writer) (options, error) {
	var r raw
	fs := flagSet(&r)
	err := meantRanks(program.Parse(fs, args, stdout))
	o := launcher.Defaults("ddplaunch")
	o.MaxRestarts, o.RunID, o.Verbose, o.Network, o.KeyFile = r.maxRestarts, r.runID, r.verbose, r.network, r.keyFile
	o.Endpoint, o.Apart = r.endpoint, told(r) || inRank(environ)
	if err != nil {
		return o, err
	}
	if r.key != "" {
		return o, cliflag.Usage("--key: whoever may list this machine's processes would read the secret: put it into a file that is yours alone (--key-file), or into EBTRAIN_KEY")
	}
	r.environ = environ
	for _, step := range []func(*options, raw, *pflag.FlagSet) error{parsePorts, parseNodes, checkPorts, checkRunID, parseBinding, parseWaits, parseOutput, parseSignals, parseProgram} {
		if err := step(&o, r, fs); err != nil {
			return o, err
		}
	}
	return o, nil
}

func parseBinding(o *options, r raw, _ *pflag.FlagSet) (err error) {
	if o.Binding, err = binding.Parse(r.numa); err != nil {
		return cliflag.Usage("--numa-binding %w", err)
	}
	return nil
}

func parseWaits(o *options, r raw, _ *pflag.FlagSet) error {
	var err error
	if o.Grace, err = parseWait("grace", r.grace); err != nil {
		return err
	}
	if o.JoinWait, err = parseWait("rdzv-timeout", r.joinWait); err != nil {
		return err
	}
	if o.StuckAfter, err = parseWaitOr0("stuck-after", r.stuckAfter); err != nil {
		return err
	}
	if o.StopBefore, err = parseWaitOr0("stop-before", r.stopBefore); err != nil {
		return err
	}
	return nil
}

// parseWaitOr0 is parseWait, for which 0 means never.
func parseWaitOr0(flag, s string) (time.Duration, error) {
	if s == "0" || s == "0s" {
		return 0, nil
	}
	d, err := parseWait(flag, s)
	if err != nil {
		return 0, cliflag.Usage("%w, or 0 for never", err)
	}
	return d, nil
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
	if o.Output.Redirect, err = supervise.ParseStreams(r.redirects); err != nil {
		return cliflag.Usage("--redirects %w", err)
	}
	switch {
	case fs.Changed("tee"):
		if o.Output.Tee, err = supervise.ParseStreams(r.tee); err != nil {
			return cliflag.Usage("--tee %w", err)
		}
	case r.logDir != "" && !fs.Changed("redirects"):
		o.Output.Tee = supervise.Streams{All: 3}
	}
	if r.logDir == "" && (fs.Changed("redirects") || fs.Changed("tee")) {
		return cliflag.Usage("--redirects and --tee need --log-dir")
	}
	o.Output.Dir = r.logDir
	if fs.Changed("gather-output") {
		o.Gather = r.gather
	}
	if r.filter == "" {
		return nil
	}
	for part := range strings.SplitSeq(r.filter, ",") {
		local, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || local < 0 || local >= o.Nproc {
			return cliflag.Usage("--local-ranks-filter %q: want local ranks from 0 to %d, for example 0,1", r.filter, o.Nproc-1)
		}
		o.Output.Filter = append(o.Output.Filter, local)
	}
	return nil
}

func parseSignals(o *options, r raw, _ *pflag.FlagSet) error {
	o.Signals = nil // the flag's default names those of the launcher's
	for name := range strings.SplitSeq(r.signals, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		s := unix.SignalNum(name)
		if s == 0 || slices.Contains([]unix.Signal{unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGPIPE, unix.SIGURG}, s) {
			return cliflag.Usage("--signals-to-handle: %q is not a signal that can be handled", name)
		}
		o.Signals = append(o.Signals, s)
	}
	return nil
}

func parseProgram(o *options, _ raw, fs *pflag.FlagSet) error {
	if fs.NArg() == 0 {
		return cliflag.Usage("no program to start: ddplaunch -nproc 2 train ...")
	}
	o.Args = fs.Args()[1:]
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where this program lies: %w", err)
	}
	dir := self[:strings.LastIndexByte(self, '/')]
	if o.Program, err = supervise.LookProgram(fs.Arg(0), dir, os.Getenv("PATH")); err != nil {
		return cliflag.AsUsage(err)
	}
	return nil
}
