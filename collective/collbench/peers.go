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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/processors"
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
func contenders(f *field, dir string) []contender {
	return []contender{
		{"ours", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return ours(ctx, f, opt, n, "alloc")
		}},
		{"ours, ordinary", func(ctx context.Context, opt options, n int) (cost.Size, time.Duration, error) {
			return ours(ctx, f, opt, n, "ordinary")
		}},
		{"OpenMPI", func(ctx context.Context, opt options, n int) (s cost.Size, used time.Duration, err error) {
			temp, err := os.MkdirTemp("", "collbench-mpi-")
			if err != nil {
				return s, 0, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
			cmd, err := f.mpirun(ctx, dir, temp, opt, n)
			if err != nil {
				return s, 0, err
			}
			return theirs("mpirun", []*exec.Cmd{cmd})
		}},
		{"gloo", func(ctx context.Context, opt options, n int) (s cost.Size, used time.Duration, err error) {
			temp, err := os.MkdirTemp("", "collbench-gloo-")
			if err != nil {
				return s, 0, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
			return theirs("gloo", f.gloo(ctx, dir, temp, opt, n))
		}},
	}
}

// amount is what the peers' programs are told to do.
func amount(opt options, n int) []string {
	return []string{strconv.Itoa(n), strconv.Itoa(opt.iters), strconv.FormatFloat(opt.maxTime.Seconds(), 'g', -1, 64)}
}

// mpirun starts MPI's ranks. On hosts of their own it runs on the first and reaches
// the others as it would by ssh, by a script in temp that enters them.
func (f *field) mpirun(ctx context.Context, dir, temp string, opt options, n int) (*exec.Cmd, error) {
	args := []string{"mpirun", "--oversubscribe", "-np", strconv.Itoa(opt.nproc)}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if opt.apart {
		args = append(args, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", f.link())
	}
	if f.net != nil {
		agent := filepath.Join(temp, "agent")
		if err := os.WriteFile(agent, []byte(f.agent()), 0o700); err != nil {
			return nil, err
		}
		var hosts []string
		for _, h := range f.net.Hosts {
			hosts = append(hosts, h.Addr+":1")
		}
		args = append(args, "--host", strings.Join(hosts, ","), "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
			"--mca", "oob_tcp_if_include", f.link(), "-x", "GLIBC_TUNABLES",
			"--bind-to", "none") // the hosts share processors, and each would bind its rank to the first
		if opt.nproc > runtime.NumCPU() { // it sees one rank on each host, and would have them spin
			args = append(args, "--mca", "mpi_yield_when_idle", "1")
		}
	}
	cmd := f.command(ctx, 0, append(append(args, filepath.Join(dir, "mpi")), amount(opt, n)...)...)
	cmd.Env = append(cmd.Env, mallocTuned)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM // it ends its ranks then
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd, nil
}

// agent is a script of shell that runs its other arguments on the host of the first,
// an address, as ssh would.
func (f *field) agent() string {
	text := "#!/bin/sh\nto=$1\nshift\ncase $to in\n"
	for _, h := range f.net.Hosts {
		enter := h.Enter("/", "sh", "-c")
		for i, arg := range enter {
			enter[i] = "'" + arg + "'" // none has a quote
		}
		text += h.Addr + ") exec " + strings.Join(enter, " ") + " \"$*\";;\n"
	}
	return text + "esac\necho \"no host has the address $to\" >&2\nexit 1\n"
}

// gloo is a program that starts all ranks, or one for each on its host. Ranks meet in
// the folder temp.
func (f *field) gloo(ctx context.Context, dir, temp string, opt options, n int) []*exec.Cmd {
	args := append([]string{filepath.Join(dir, "gloo"), strconv.Itoa(opt.nproc)}, amount(opt, n)...)
	args = append(args, temp, f.link())
	if f.net == nil {
		cmd := f.command(ctx, 0, args...)
		cmd.Env = append(cmd.Env, mallocTuned)
		return []*exec.Cmd{cmd}
	}
	cmds := make([]*exec.Cmd, opt.nproc)
	for r := range cmds {
		cmds[r] = f.command(ctx, r, append(slices.Clone(args), strconv.Itoa(r))...)
		cmds[r].Env = append(cmds[r].Env, mallocTuned)
	}
	return cmds
}

// ours is collbench itself.
func ours(ctx context.Context, f *field, opt options, n int, memory string) (s cost.Size, used time.Duration, err error) {
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return s, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "report.json")
	used, err = f.ranks(ctx, opt.nproc, []string{"-nproc", strconv.Itoa(opt.nproc), "--network", opt.values["network"], "--sizes", strconv.Itoa(n),
		"--memory", memory, "--iters", strconv.Itoa(opt.iters), "--max-time", opt.maxTime.String(), "--json", file}, nil, nil)
	if err != nil {
		return s, used, err
	}
	r, err := cost.Read(file)
	if err != nil {
		return s, used, err
	}
	return r.Sizes[0], used, nil
}

// theirs runs the programs of one of the peers, the first of which prints.
func theirs(name string, cmds []*exec.Cmd) (s cost.Size, used time.Duration, err error) {
	var out bytes.Buffer
	cmds[0].Stdout = &out
	if used, err = together(cmds); err != nil {
		return s, used, fmt.Errorf("%s: %w", name, err)
	}
	text := bytes.TrimSpace(out.Bytes())
	if err := json.Unmarshal(text, &s); err != nil {
		return s, used, fmt.Errorf("%s printed %q, expected a line of JSON: %w", name, text, err)
	}
	if s.Median <= 0 || s.Wrong != 0 {
		return s, used, fmt.Errorf("%s printed %s: no time, or wrong elements", name, text)
	}
	return s, used, nil
}

// compare measures all contenders in turn, size by size, and prints the table.
func compare(ctx context.Context, opt options, w io.Writer) (err error) {
	for _, name := range []string{"mpi", "gloo"} {
		if _, err := os.Stat(filepath.Join(opt.peers, name)); err != nil {
			return cliflag.Usage("--peers %s: %w: make -C collective/collbench/peers deps all builds them", opt.peers, err)
		}
	}
	if opt.peers, err = filepath.Abs(opt.peers); err != nil {
		return err
	}
	f, err := newField(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	all := contenders(f, opt.peers)
	if err := compareHead(w, opt, all); err != nil {
		return err
	}
	for _, n := range opt.whole(opt.nproc) {
		c, err := compareSize(ctx, opt, all, n)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, c.row()); err != nil {
			return err
		}
	}
	return nil
}

// compareSize measures all contenders in turn with vectors of n bytes.
func compareSize(ctx context.Context, opt options, all []contender, n int) (c comparison, err error) {
	c = comparison{bytes: n, runs: make([][]cost.Size, len(all))}
	before, err := processors.Worked()
	if err != nil {
		return c, err
	}
	begun, used := time.Now(), time.Duration(0)
	for round := range opt.rounds {
		for i := range all {
			at := (i + round) % len(all) // each comes first some time
			s, cpu, err := all[at].run(ctx, opt, n)
			if err != nil {
				return c, fmt.Errorf("%s, %d bytes: %w", all[at].name, n, err)
			}
			c.runs[at] = append(c.runs[at], s)
			used += cpu
		}
	}
	after, err := processors.Worked()
	if err != nil {
		return c, err
	}
	c.others = (after - before - used).Seconds() / time.Since(begun).Seconds()
	return c, nil
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
