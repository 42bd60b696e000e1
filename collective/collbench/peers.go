package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/launch/cliflag"
)

// mallocTuned has malloc keep what it has: a library that takes its buffers anew for
// each all-reduce would otherwise have the kernel map and clear them each time.
const mallocTuned = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592"

// A contender is a program that times all-reduces of one size, of as many ranks as
// there are, once.
type contender struct {
	name string
	run  func(ctx context.Context, opt options, bytes int) (cost.Size, time.Duration, error) // and the processor time it took
}

// contenders are ours and the peers of a folder, in the order of the columns.
func contenders(dir string) []contender {
	return []contender{
		{"ours", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return ours(ctx, opt, n, "alloc")
		}},
		{"ours, ordinary", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return ours(ctx, opt, n, "ordinary")
		}},
		{"OpenMPI", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return theirs(ctx, mpirun(dir, opt, n))
		}},
		{"gloo", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return theirs(ctx, append([]string{filepath.Join(dir, "gloo"), strconv.Itoa(opt.nproc)}, amount(opt, n)...))
		}},
	}
}

// amount is what the peers' programs are told to do.
func amount(opt options, n int) []string {
	return []string{strconv.Itoa(n), strconv.Itoa(opt.iters), strconv.FormatFloat(opt.maxTime.Seconds(), 'g', -1, 64)}
}

func mpirun(dir string, opt options, n int) []string {
	args := []string{"mpirun", "--oversubscribe", "-np", strconv.Itoa(opt.nproc)}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if opt.apart {
		args = append(args, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
	}
	return append(append(args, filepath.Join(dir, "mpi")), amount(opt, n)...)
}

// ours is collbench itself.
func ours(ctx context.Context, opt options, n int, memory string) (s cost.Size, used time.Duration, err error) {
	exe, err := os.Executable()
	if err != nil {
		return s, 0, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return s, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "report.json")
	_, used, err = output(ctx, []string{exe, "-nproc", strconv.Itoa(opt.nproc), "--network", opt.values["network"], "--sizes", strconv.Itoa(n),
		"--memory", memory, "--iters", strconv.Itoa(opt.iters), "--max-time", opt.maxTime.String(), "--json", file})
	if err != nil {
		return s, used, err
	}
	r, err := cost.Read(file)
	if err != nil {
		return s, used, err
	}
	return r.Sizes[0], used, nil
}

// theirs is one of the peers' programs.
func theirs(ctx context.Context, args []string) (s cost.Size, used time.Duration, err error) {
	text, used, err := output(ctx, args)
	if err != nil {
		return s, used, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, used, fmt.Errorf("%s printed %q, expected a line of JSON: %w", args[0], text, err)
	}
	if s.Median <= 0 || s.Wrong != 0 {
		return s, used, fmt.Errorf("%s printed %s: no time, or wrong elements", args[0], bytes.TrimSpace(text))
	}
	return s, used, nil
}

// output runs a program to its end: what it prints, and the processor time that it
// and its children took. It ends with ctx, and with this process.
func output(ctx context.Context, args []string) ([]byte, time.Duration, error) {
	runtime.LockOSThread() // Pdeathsig means the death of the thread that starts it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Env = append(os.Environ(), mallocTuned)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // mpirun ends its ranks then
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w; it said %q", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// compare measures all contenders in turn, size by size, and prints the table.
func compare(ctx context.Context, opt options, w io.Writer) error {
	for _, name := range []string{"mpi", "gloo"} {
		if _, err := os.Stat(filepath.Join(opt.peers, name)); err != nil {
			return cliflag.Usage("--peers %s: %w: make -C collective/collbench/peers deps all builds them", opt.peers, err)
		}
	}
	all := contenders(opt.peers)
	if err := compareHead(w, opt, all); err != nil {
		return err
	}
	for _, n := range opt.whole(opt.nproc) {
		c := comparison{bytes: n, runs: make([][]cost.Size, len(all))}
		before, begun, used := busy(), time.Now(), time.Duration(0)
		for round := range opt.rounds {
			for i := range all {
				at := (i + round) % len(all) // each comes first some time
				s, cpu, err := all[at].run(ctx, opt, n)
				if err != nil {
					return fmt.Errorf("%s, %d bytes: %w", all[at].name, n, err)
				}
				c.runs[at] = append(c.runs[at], s)
				used += cpu
			}
		}
		c.others = (busy() - before - used).Seconds() / time.Since(begun).Seconds()
		if _, err := io.WriteString(w, c.row()); err != nil {
			return err
		}
	}
	return nil
}

// peered says whether the flags make sense beside --peers.
func (o options) peered() error {
	switch {
	case o.peers == "" && o.said["rounds"]:
		return cliflag.Usage("--rounds %d is for --peers", o.rounds)
	case o.peers == "":
		return nil
	case o.rounds < 1:
		return cliflag.Usage("--rounds is %d, expected at least 1", o.rounds)
	case o.kind != collective.AllReduce || o.dtype != collective.F32:
		return cliflag.Usage("--peers times all-reduces of f32 only, not --collective %s of --dtype %s", o.values["collective"], o.values["dtype"])
	case o.said["hosts"] || o.said["memory"] || o.said["json"]:
		return cliflag.Usage("--peers prints a table of both kinds of memory: leave out --hosts, --memory and --json")
	}
	return nil
}
