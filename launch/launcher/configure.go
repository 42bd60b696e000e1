package launcher

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"ebtrain/launch/binding"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/outlet"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/supervise"
	"ebtrain/launch/variable"
)

// answerWait is how long a node waits for what the coordinator decides on a failure. That
// one is dead is known otherwise: this is for one that stands still.
const answerWait = 10 * time.Second

// strangerWait is how long a program takes to start, and to be one that hears the
// launcher, on a busy machine.
const strangerWait = 5 * time.Second

// goneWait is how long the kernel may take to clear away a rank that was killed: hundreds
// of gigabytes, pinned for a GPU, take it many seconds.
const goneWait = 30 * time.Second

// remindAfter is how long others are waited for until it is said who is missing; then it is at
// twice the time.
const remindAfter = 10 * time.Second

// joinWindow is how long an elastic job that has enough nodes waits for more:
// one that comes later costs a checkpoint and a new start of all ranks.
const joinWindow = 2 * time.Second

// configure turns options into what supervise needs: it makes the log folder,
// the job's name and key and, with several nodes, opens the transport, for which
// it may wait until ctx ends.
func configure(ctx context.Context, o Options, environ []string, stdout, stderr *outlet.Writer) (supervise.Config, error) {
	cfg, err := prepare(o, environ, stdout, stderr)
	switch {
	case err != nil:
		err = cliflag.Show(o.Name, err, stderr) // others may be long in coming
		Absent(ctx, o, environ, err)
	case o.Nodes == 1:
		cfg.Node.Key = randomKey()
	default:
		err = openTransport(ctx, &cfg, o, environ)
	}
	if err != nil {
		return supervise.Config{}, err
	}
	if err := dataAddr(&cfg, o); err != nil {
		if cfg.Transport != nil && o.NodeRank != 0 { // node 0 waits for this one
			cfg.Transport.Send("", rendezvous.Message{Kind: rendezvous.KindAbsent, Text: fmt.Sprintf("a node (%s) does not take part: %v", cfg.Node.Info.Host, err)})
		}
		return supervise.Config{}, abandon(cfg, err)
	}
	return cfg, nil
}

// prepare is what of configure needs no other launcher.
func prepare(o Options, environ []string, stdout, stderr *outlet.Writer) (supervise.Config, error) {
	log := slog.New(plainlog.New(o.Name, stderr))
	if o.Verbose { // for who looks for a mistake, with times
		log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.Output.Dir != "" {
		if err := makeFolder(o.Output.Dir); err != nil {
			return supervise.Config{}, cliflag.Usage("--log-dir %s: %w: give another", o.Output.Dir, err)
		}
	}
	host, hostID, err := rendezvous.LocalHost()
	if err != nil {
		return supervise.Config{}, err
	}
	if o.Host != "" {
		host = o.Host
	}
	key, err := o.secret(environ)
	if err != nil {
		return supervise.Config{}, err
	}
	if _, err := o.networkAddr(); err != nil { // before others wait for this launcher
		return supervise.Config{}, err
	}
	cfg := supervise.Config{
		Name: o.Name, Program: o.Program, Args: o.Args, Environ: environ,
		Local: o.Local, Locals: o.Locals, RunID: o.RunID, MaxRestarts: o.MaxRestarts,
		Output: o.Output, Stdout: stdout, Stderr: stderr, Log: log,
		Node: rendezvous.NodeConfig{
			Info: rendezvous.NodeInfo{
				Name: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), nonce(4)),
				Host: host, HostID: hostID, Addr: "127.0.0.1",
				Nproc: o.Nproc, Want: o.NodeRank, Nodes: o.Nodes, Least: o.fewest(),
			},
			Key: key, Join: o.Endpoint, Ports: o.Ports, Again: registerAgain(o.Nodes), JoinWait: o.JoinWait + 2*time.Second,
			AnswerWait: answerWait, StopWait: time.Second, KillWait: time.Second, GoneWait: goneWait, StrangerWait: strangerWait, Grace: o.Grace, Batch: env.InBatchJob(environ),
		},
	}
	warnIfScarce(log, o.Nproc, environ)
	if o.Binding == binding.None {
		cfg.Environ = threads(environ, o.Nproc, o.Locals, runtime.GOMAXPROCS(0))
	} else if cfg.Places, err = places(o, environ); err != nil {
		return supervise.Config{}, err
	}
	if cfg.RunID == "" {
		cfg.RunID = "job-" + nonce(4)
	}
	if o.Nodes > 1 {
		if cfg.Node.Run, err = command(o); err != nil {
			return supervise.Config{}, err
		}
	}
	if o.NodeRank == 0 {
		cfg.Coordinator = &rendezvous.CoordinatorConfig{
			Nodes: o.Nodes, Least: o.fewest(), Window: joinWindow, MaxRestarts: o.MaxRestarts, Job: jobName(cfg.RunID), Self: cfg.Node.Info.Name, Run: cfg.Node.Run,
			JoinWait: o.JoinWait, Remind: remindAfter, AckWait: ackWait, Settle: 50 * time.Millisecond,
			Grace: o.Grace, StuckAfter: o.StuckAfter, Together: o.Step.Source != "",
		}
		if len(o.Hosts) == o.Nodes { // else the launchers are some of them, nobody knows which
			cfg.Coordinator.Hosts = o.Hosts
		}
	}
	terminal(&cfg, stdout.Under(), stderr.Under())
	cfg.Gather = o.Gather
	cfg.Draws = cfg.TTY && variable.Get(environ, "TERM") != "dumb"
	cfg.Color = cfg.Draws && variable.Get(environ, "NO_COLOR") == ""
	cfg.ErrorFile = variable.Get(environ, supervise.ErrorFileVar)
	return cfg, nil
}

// makeFolder makes path, and what it lies in. The error does not say path.
func makeFolder(path string) error {
	err := os.MkdirAll(path, 0o777)
	at, ok := errors.AsType[*fs.PathError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is a link to what is not there", at.Path)
	case !errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("the folder cannot be made: %w", at.Err)
	case filepath.Clean(at.Path) == filepath.Clean(path):
		return errors.New("that is a file, want a folder")
	}
	return fmt.Errorf("%s is a file, want a folder", at.Path)
}

// ackWait is long: all launchers have registered, so they live, and one that dies is
// noticed. On a busy machine they may need some time.
const ackWait = 30 * time.Second

// registerAgain is how long a launcher waits until it registers again, among so many.
func registerAgain(nodes int) time.Duration {
	const interval, many, slowest = 200 * time.Millisecond, 32, 5
	return interval * time.Duration(min(max(1, nodes/many), slowest))
}

// fewest is how many nodes suffice, 0 if their number is fixed.
func (o Options) fewest() int {
	if o.Least == o.Nodes {
		return 0
	}
	return o.Least
}

// command is what is run, which other nodes must run too.
func command(o Options) (c rendezvous.Command, err error) {
	c = rendezvous.Command{Program: filepath.Base(o.Program), Args: o.Args}
	f, err := os.Open(o.Program)
	if err != nil {
		return c, fmt.Errorf("read %s, to compare it with that of other nodes: %w", o.Program, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return c, fmt.Errorf("read %s, to compare it with that of other nodes: %w", o.Program, err)
	}
	c.Digest = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// jobName is a name that no other job has, made of letters, digits, '-', '_'
// and '.' only.
func jobName(runID string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, runID)
	return clean[:min(len(clean), 64)] + "-" + nonce(6)
}

func nonce(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// threads shares the cores that this launcher has, or that a container's quota of
// processor time is worth (GOMAXPROCS), among its ranks, for libraries that use OpenMP,
// unless the user has decided otherwise. Of the locals ranks of this
// host, others are other launchers', if that is more than nproc; a scheduler may have
// given each of these cores of its own, which are then fewer than the job has here.
func threads(environ []string, nproc, locals, cores int) []string {
	ranks := max(nproc, locals)
	if ranks > nproc && jobCores(environ) > cores {
		ranks = nproc
	}
	return supervise.SetDefault(environ, supervise.ThreadsVar, strconv.Itoa(max(1, cores/ranks)))
}

// warnIfScarce tells of ranks that have fewer processors than they are, although the machine has
// more: Slurm gives a task one, unless it is asked for more.
func warnIfScarce(log *slog.Logger, ranks int, environ []string) {
	m, err := binding.This()
	if err != nil {
		return // nothing is known of the machine
	}
	all, err := m.Processors()
	if have := runtime.GOMAXPROCS(0); err == nil && scarce(ranks, have, all, environ) {
		log.Warn("the ranks of this node share fewer processors than they are, as many as Slurm has given the task: srun --cpus-per-task gives more", "ranks", ranks, "processors", have, "of", all)
	}
}

func scarce(ranks, have, all int, environ []string) bool {
	return env.InBatchJob(environ) && have < ranks && have < all
}

// places are where this launcher's ranks are to run.
func places(o Options, environ []string) ([]binding.Place, error) {
	m, err := binding.This()
	if err != nil {
		return nil, err
	}
	all, err := m.Of(o.Binding, max(o.Nproc, o.Locals), environ)
	if err != nil {
		return nil, cliflag.Usage("--numa-binding %s: %w", o.Binding, err)
	}
	return all[o.Local:][:o.Nproc], nil
}

// jobCores is how many cores Slurm has given the job on this host; 0 if it does not
// say.
func jobCores(environ []string) int {
	for _, kv := range environ {
		if text, ok := strings.CutPrefix(kv, "SLURM_CPUS_ON_NODE="); ok {
			n, err := strconv.Atoi(text)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// terminal finds out whether the output is a terminal, whose width may change.
func terminal(cfg *supervise.Config, stdout, stderr io.Writer) {
	out, ok1 := stdout.(*os.File)
	err, ok2 := stderr.(*os.File)
	if !ok1 || !ok2 || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(err.Fd())) {
		return
	}
	cfg.TTY = true
	cfg.Columns = func() int {
		width, _, err := term.GetSize(int(err.Fd()))
		if err != nil {
			return 0
		}
		return width
	}
}

// freePort finds a port that is free now, to be offered as MASTER_PORT to
// programs that open one themselves. This launcher does not use it.
func freePort(addr string, allowed rendezvous.Ports) (int, error) {
	var err error
	for _, port := range allowed.From(os.Getpid()) {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(addr, strconv.Itoa(port))); err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
	}
	if !allowed.Any() {
		return 0, fmt.Errorf("no port of --port-range %v is free on %s for the ranks (%w): give a larger one", allowed, addr, err)
	}
	return 0, fmt.Errorf("find a free port on %s: %w", addr, err)
}
