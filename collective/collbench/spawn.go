package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
)

// Environment of a rank. The key comes over its standard input.
const (
	rankEnv   = "COLLBENCH_RANK"
	dirEnv    = "COLLBENCH_DIR"
	listenEnv = "COLLBENCH_LISTEN" // its address
)

const (
	keyBytes = 32
	loopback = "127.0.0.1"
)

// spawn runs this program once for each rank, on hosts of its own if they are wanted.
func spawn(ctx context.Context, opt options, args []string) (err error) {
	f, err := newField(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	_, err = f.ranks(ctx, opt.nproc, args, os.Stdout, nil)
	if ctx.Err() != nil {
		return err
	}
	return asSaid(err, os.Stderr)
}

// asSaid shows on w what the rank said that failed first, and that is the sentence of err: the
// others can say nothing but that a rank failed.
func asSaid(err error, w io.Writer) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || f.said == "" {
		return err
	}
	_, _ = fmt.Fprintln(w, f.said) // there is nowhere else to say it
	return cliflag.Show("collbench", err, io.Discard)
}

// ranks runs this program with args once for each rank, and is the processor time that
// they took. What nobody wants (nil) of standard error is in the error.
func (f *field) ranks(ctx context.Context, n int, args []string, stdout, stderr io.Writer) (used time.Duration, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	cmds := make([]*exec.Cmd, n)
	for r := range cmds {
		cmds[r] = f.command(ctx, r, append([]string{exe}, args...)...)
		cmds[r].Env = append(cmds[r].Env, rankEnv+"="+strconv.Itoa(r), dirEnv+"="+dir, listenEnv+"="+f.address(r))
		cmds[r].Stdin, cmds[r].Stdout, cmds[r].Stderr = bytes.NewReader(key), stdout, stderr
	}
	return together(cmds)
}

// runRank joins the group and measures.
func runRank(ctx context.Context, opt options, number string) (err error) {
	rank, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%s: %w", rankEnv, err)
	}
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(os.Stdin, key); err != nil {
		return fmt.Errorf("rank %d: read the key: %w", rank, err)
	}
	hosts := make([]string, opt.nproc)
	if opt.apart {
		opt.hosts = opt.nproc
	}
	for r := range hosts {
		hosts[r] = strconv.Itoa(r * opt.hosts / opt.nproc)
	}
	at := os.Getenv(listenEnv)
	c, err := host.New(ctx, host.Config{
		Rank: rank, Size: opt.nproc, Hosts: hosts, Job: "collbench", Key: key, ListenIP: at,
		Exchange: host.DirExchange(os.Getenv(dirEnv), rank, opt.nproc),
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Close())
		afterOthers(ctx, err)
	}()
	return measureAll(ctx, place{Comm: c, host: c, machines: 1, cores: runtime.NumCPU(), listenIP: at}, opt, os.Stdout)
}

// courtesy is for how long a rank leaves the first word to one that fails itself. It is
// ended at once when that one has.
const courtesy = 5 * time.Second

// afterOthers waits where err is the failure of another rank, which knows why, and is on its
// way out, but may be slower: what is told is said by the first that ends.
func afterOthers(ctx context.Context, err error) {
	others := errors.Is(err, collective.ErrPeerLost) || errors.Is(err, collective.ErrAborted) && !errors.Is(err, collective.ErrOwnAbort)
	if !others {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(courtesy):
	}
}
