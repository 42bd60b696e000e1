package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/exec/cuda"
)

// suites is part b: first what two ranks show, last what takes longest.
func suites(ctx context.Context, o *options, r *report) error {
	err := losses(ctx, r, 2)
	for _, how := range []end{killed, aborted} {
		err = errors.Join(err, r.do(ctx, "b", fmt.Sprintf("a rank %s inside a captured step of 2 ranks %s, NCCL", how, onOneGPU), func() (string, map[string]any, error) {
			_, err := r.sharing(ctx, task{Ranks: 2, Transport: cuda.TransportNCCL, Launch: cuda.GraphsOn, End: how})
			return "", nil, err
		}))
	}
	err = errors.Join(err, collectives(ctx, r), losses(ctx, r, 4), randomPrograms(ctx, o, r))
	for _, name := range []string{backendPlain, backendLibraries} {
		if o.size.Graphs == 0 {
			break
		}
		err = errors.Join(err, r.do(ctx, "b", name, func() (string, map[string]any, error) {
			return suite(ctx, task{Tests: name, Graphs: o.size.Graphs})
		}))
	}
	err = errors.Join(err, r.do(ctx, "b", "steps "+underSanitizer, func() (string, map[string]any, error) { return sanitized(ctx, task{Ranks: 1}, 90*time.Second) }))
	if o.size.Graphs == 0 {
		return err
	}
	return errors.Join(err, r.do(ctx, "b", backendPlain+" "+underSanitizer, func() (string, map[string]any, error) {
		return sanitized(ctx, task{Tests: backendPlain, Graphs: 1, Limit: min(sanitizedSuite, o.each/2)}, o.each*9/10)
	}))
}

// losses are checks that ranks which share the GPU have the losses of one alone, and with
// virtual shards its bits.
func losses(ctx context.Context, r *report, ranks int) (err error) {
	for _, t := range []task{
		{Transport: cuda.TransportStaged}, {Transport: cuda.TransportNCCL, Launch: cuda.GraphsOff}, {Transport: cuda.TransportNCCL, Launch: cuda.GraphsOn},
		{Transport: cuda.TransportStaged, Shards: mostRanks}, {Transport: cuda.TransportNCCL, Launch: cuda.GraphsOn, Shards: mostRanks},
	} {
		t.Ranks = ranks
		what := "losses"
		if t.Shards > 0 {
			what = "bits with virtual shards"
		}
		err = errors.Join(err, r.do(ctx, "b", fmt.Sprintf("%s of %d ranks %s, %s%s", what, ranks, onOneGPU, transports[t.Transport], launches[t.Launch]), func() (string, map[string]any, error) {
			want, err := lossesOf(ctx, t.workload(), openGPU(cuda.Config{Plain: true}), workerSteps)
			if err != nil {
				return "", nil, err
			}
			got, err := r.sharing(ctx, t)
			if err != nil {
				return "", nil, err
			}
			return agree(want, got, t.Shards > 0)
		}))
	}
	return err
}

// The bounds of what ranks differ by for rounding. Norms of gradients get more of it: where
// it moves a number over the bend of a rectifier, the derivative jumps.
const (
	lossesApart    = 1e-4
	gradientsApart = 1e-2
)

const apartKey = "apart"

// agree compares ranks' reports with those of one alone.
func agree(want, got [][]float64, bits bool) (string, map[string]any, error) {
	names, err := small.columns()
	if err != nil {
		return "", nil, err
	}
	all, column := farthest(want, got)
	mean := apart(means(want, names), means(got, names))
	numbers := map[string]any{apartKey: mean, "with_norms": all, "of": names[column]}
	switch {
	case bits && all != 0:
		err = fmt.Errorf("%s is apart from one rank's by %.2g, want the same bits", names[column], all)
	case !(mean <= lossesApart):
		err = fmt.Errorf("losses are apart from one rank's by %.2g, want at most %.0e", mean, lossesApart)
	case !(all <= gradientsApart):
		err = fmt.Errorf("%s is apart from one rank's by %.2g, want at most %.0e", names[column], all, gradientsApart)
	}
	return "", numbers, err
}

// sharing is together; but where as many ranks of NCCL or fewer could not share a GPU
// before, they are not asked again, as each may take its whole time. Two that cannot be
// captured may be launched one by one.
func (r *report) sharing(ctx context.Context, t task) ([][]float64, error) {
	for _, c := range r.Checks {
		n := ranksOf(c.Name)
		if c.Numbers[apartKey] != nil {
			continue // they could
		}
		if t.Transport == cuda.TransportNCCL && !c.OK && !c.Skipped && n > 0 && n <= t.Ranks && (t.Launch == cuda.GraphsOn || !strings.Contains(c.Name, "captured")) {
			return nil, fmt.Errorf("%w: %q has failed", errSkipped, c.Name)
		}
	}
	return together(ctx, t)
}

var sharers = regexp.MustCompile(`(\d+) (?:ranks|processes) ` + onOneGPU)

// ranksOf is how many ranks of NCCL share a GPU in a check, by its name; 0 if none do.
func ranksOf(name string) int {
	m := sharers.FindStringSubmatch(name)
	if m == nil || !strings.Contains(name, transports[cuda.TransportNCCL]) {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0 // no check has so many
	}
	return n
}

// patience is how long ranks may take together.
const patience = 75 * time.Second

// onOneGPU is in the names of checks whose ranks share one.
const onOneGPU = "on one GPU"

var (
	transports = map[cuda.Transport]string{cuda.TransportStaged: "staged", cuda.TransportNCCL: "NCCL"}
	// launches are how steps are, as a capture that fails is else only said.
	launches = map[cuda.Graphs]string{cuda.GraphsAuto: "", cuda.GraphsOff: ", one by one", cuda.GraphsOn: ", captured"}
)

// workerSteps are the steps that a rank does; the third is the first that is replayed.
const workerSteps = 4

// task is what a rank is told.
type task struct {
	Rank, Ranks  int
	Transport    cuda.Transport
	Launch       cuda.Graphs
	Meet         string // folder in which the ranks find each other
	Shards       int    // virtual ones of its steps, as in workload
	Width, Batch int    // of its steps; 0: those of small
	End          end    // how the last rank ends inside an endless run; "": it is not endless
	Suite        bool   // no steps, but what a rank can do of the suite of collectives

	Tests  string        // no rank, but tests: which
	Graphs int           // random ones of them
	Most   int           // ranks of them
	Limit  time.Duration // after which no more of them are done; 0 is none
}

// workload is what ranks of the task train.
func (t task) workload() workload {
	w := small
	w.Shards, w.Width, w.Batch = t.Shards, cmp.Or(t.Width, w.Width), cmp.Or(t.Batch, w.Batch)
	return w
}

// together runs ranks that share the GPU, each a process, and is the losses that rank 0
// reports. An endless task's last one ends in the middle, and the others must soon.
func together(ctx context.Context, t task) (_ [][]float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gpucheck-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var cmds []*exec.Cmd
	outs, errs := make([]strings.Builder, t.Ranks), make([]strings.Builder, t.Ranks)
	t.Meet = dir
	for rank := range t.Ranks {
		t.Rank = rank
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, self, "--worker", string(b))
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &outs[rank], &errs[rank], 10*time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it hangs
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
	}
	if t.End != "" {
		return nil, t.End.survive(ctx, cmds, errs, dir)
	}
	ill := false // one has failed by itself
	for rank, cmd := range cmds {
		if e := cmd.Wait(); e != nil {
			ill = ill || cmd.ProcessState.ExitCode() >= 0 && !strings.Contains(errs[rank].String(), "SIGQUIT: quit")
			err = errors.Join(err, fmt.Errorf("rank %d: %w: %s", rank, e, strings.TrimSpace(errs[rank].String())))
		}
	}
	if err != nil && !ill && outer.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(outer), err)
	}
	if err != nil || t.Suite {
		return nil, err
	}
	var all [][]float64
	return all, json.Unmarshal([]byte(outs[0].String()), &all)
}

// work is a rank.
func work(ctx context.Context, text string, stdout io.Writer) (err error) {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	if t.Tests != "" {
		return runTests(t)
	}
	if t.Ranks == 1 {
		_, err := lossesOf(ctx, small, openGPU(cuda.Config{Plain: true}), workerSteps)
		return err
	}
	if err := hostOfItsOwn(t.Rank); err != nil {
		return err
	}
	if t.Suite {
		return conform(ctx, t)
	}
	comm, err := meet(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, comm.Close()) }()
	s, err := open(ctx, t.workload(), openGPU(cuda.Config{Plain: true, Transport: t.Transport, Graphs: t.Launch, Deterministic: t.Shards > 0}), comm)
	if err != nil {
		comm.Abort(err)
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	all, err := s.losses(ctx, workerSteps)
	if err != nil {
		comm.Abort(err)
		return err
	}
	if t.End != "" {
		return t.endless(ctx, s, comm)
	}
	if t.Rank == 0 {
		return json.NewEncoder(stdout).Encode(all)
	}
	return nil
}

// meet is the group of a task's processes, which find each other through files.
func meet(ctx context.Context, t task) (collective.Comm, error) {
	return host.New(ctx, host.Config{Rank: t.Rank, Size: t.Ranks, Job: "gpucheck", Key: []byte("gpucheck, on this machine alone"),
		Exchange: host.DirExchange(t.Meet, t.Rank, t.Ranks)})
}
