package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/member"
	"ebtrain/launch/outlet"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/supervise"
)

const (
	minKey = 16 // characters of EBTRAIN_KEY
	// joinWindow is how long an elastic job that has enough nodes waits for more:
	// one that comes later costs a checkpoint and a new start of all ranks.
	joinWindow = 2 * time.Second
)

// configure turns options into what supervise needs: it makes the log folder,
// the job's name and key and, with several nodes, opens the transport, for which
// it may wait until ctx ends.
func configure(ctx context.Context, o options, environ []string, stdout, stderr *outlet.Writer) (supervise.Config, error) {
	log := slog.New(plainlog.New("ddplaunch", stderr))
	if o.verbose { // for who looks for a mistake, with times
		log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.output.Dir != "" {
		if err := os.MkdirAll(o.output.Dir, 0o755); err != nil {
			return supervise.Config{}, cliflag.Usage("--log-dir: %w", err)
		}
	}
	host, hostID, err := rendezvous.LocalHost()
	if err != nil {
		return supervise.Config{}, err
	}
	key, err := jobKey(o, environ)
	if err != nil {
		return supervise.Config{}, err
	}
	cfg := supervise.Config{
		Program: o.program, Args: o.args, Environ: threads(environ, o.nproc),
		RunID: o.runID, MaxRestarts: o.maxRestarts,
		Output: o.output, Stdout: stdout, Stderr: stderr, Log: log,
		Node: rendezvous.NodeConfig{
			Info: rendezvous.NodeInfo{
				Name: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), nonce(4)),
				Host: host, HostID: hostID, Addr: "127.0.0.1",
				Nproc: o.nproc, Want: o.nodeRank, Nodes: o.nodes, Least: o.fewest(),
			},
			Key: key, Join: o.endpoint, Again: 200 * time.Millisecond, JoinWait: o.joinWait + 2*time.Second,
			AnswerWait: time.Second, KillWait: time.Second, Grace: o.grace,
		},
	}
	if cfg.RunID == "" {
		cfg.RunID = "job-" + nonce(4)
	}
	if o.nodes > 1 {
		if cfg.Node.Run, err = command(o); err != nil {
			return supervise.Config{}, err
		}
	}
	if o.nodeRank == 0 {
		cfg.Coordinator = &rendezvous.CoordinatorConfig{
			Nodes: o.nodes, Least: o.fewest(), Window: joinWindow, MaxRestarts: o.maxRestarts, Job: jobName(cfg.RunID), Self: cfg.Node.Info.Name, Run: cfg.Node.Run,
			JoinWait: o.joinWait, AckWait: 10 * time.Second, Settle: 50 * time.Millisecond,
			StuckAfter: o.stuckAfter,
		}
	}
	if cfg.Coordinator != nil {
		hosts, err := env.StepHosts(environ)
		if err != nil {
			return supervise.Config{}, err
		}
		if len(hosts) == o.nodes { // else the launchers are some of them, nobody knows which
			cfg.Coordinator.Hosts = hosts
		}
	}
	terminal(&cfg, stdout.Under(), stderr.Under())
	if o.nodes > 1 {
		if err := openTransport(ctx, &cfg, o, key); err != nil {
			return supervise.Config{}, err
		}
	}
	cfg.Node.Info.Port, err = freePort(cfg.Node.Info.Addr)
	return cfg, err
}

// fewest is how many nodes suffice, 0 if their number is fixed.
func (o options) fewest() int {
	if o.least == o.nodes {
		return 0
	}
	return o.least
}

// command is what is run, which other nodes must run too.
func command(o options) (c rendezvous.Command, err error) {
	c = rendezvous.Command{Program: filepath.Base(o.program), Args: o.args}
	f, err := os.Open(o.program)
	if err != nil {
		return c, fmt.Errorf("read %s, to compare it with that of other nodes: %w", o.program, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return c, fmt.Errorf("read %s, to compare it with that of other nodes: %w", o.program, err)
	}
	c.Digest = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// openTransport joins, or as node 0 opens, the group of launchers.
func openTransport(ctx context.Context, cfg *supervise.Config, o options, key []byte) error {
	m, err := member.Open(ctx, member.Config{
		Name: cfg.Node.Info.Name, Coordinator: o.nodeRank == 0, Endpoint: o.endpoint,
		Key: key, Label: "ebtrain/" + o.runID, Wait: o.joinWait, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	cfg.Transport = m
	cfg.Node.Info.Addr = m.Addr()
	if o.nodeRank == 0 {
		more, all := strconv.Itoa(o.nodes-1), strconv.Itoa(o.nodes)
		if o.least < o.nodes {
			more, all = fmt.Sprintf("%d to %d", o.least-1, o.nodes-1), fmt.Sprintf("%d:%d", o.least, o.nodes)
		}
		_, err := fmt.Fprintf(cfg.Stderr, "ddplaunch: waiting for %s more nodes; on each of them: ddplaunch --nnodes %s --join %s ...\n",
			more, all, net.JoinHostPort(m.Addr(), strconv.Itoa(m.Port())))
		if err != nil {
			return errors.Join(err, m.Close())
		}
	}
	return nil
}

// jobKey is the secret of the job: random for one node, derived from
// EBTRAIN_KEY for several.
func jobKey(o options, environ []string) ([]byte, error) {
	if o.nodes == 1 {
		key := make([]byte, 32)
		rand.Read(key)
		return key, nil
	}
	for _, kv := range environ {
		secret, ok := strings.CutPrefix(kv, "EBTRAIN_KEY=")
		if !ok {
			continue
		}
		if len(secret) < minKey {
			return nil, cliflag.Usage("EBTRAIN_KEY has %d characters, want at least %d: for example the output of openssl rand -hex 32", len(secret), minKey)
		}
		sum := sha256.Sum256([]byte("ebtrain job key\x00" + secret))
		return sum[:], nil
	}
	return nil, cliflag.Usage("several nodes need a common secret: set EBTRAIN_KEY to the same value on all of them, for example the output of openssl rand -hex 32")
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

// threads shares this node's cores among its ranks, for libraries that use
// OpenMP, unless the user has decided otherwise.
func threads(environ []string, nproc int) []string {
	return supervise.SetDefault(environ, "OMP_NUM_THREADS", strconv.Itoa(max(1, runtime.NumCPU()/nproc)))
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
func freePort(addr string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on %s: %w", addr, err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
