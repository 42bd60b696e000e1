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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/netns"
)

const (
	patience = 40 * time.Second // of a job, if it is of few launchers
	stepWait = 1 * time.Millisecond
	tagVar   = "CHAOS_TRIAL"
	port     = 29400
)

// workshop is where trials are made.
type workshop struct {
	options
	ctx                   context.Context
	self, launcher, train string // programs
	dir                   string
	net                   *netns.Network
	made                  int
}

// job is a job of a trial.
type job struct {
	w       *workshop
	dir     string
	tag     string // in the environment of all its processes
	nodes   []*node
	fixed   []string // flags of its launchers
	trained []string // more flags of train

	patience time.Duration // for anything: more is a hang
}

// node is a launcher.
type node struct {
	host *netns.Host
	cmd  *exec.Cmd
	out  *tail
	done chan struct{} // closed when it has ended,
	at   time.Time     // here
	code int           // with this
}

// tail is what a process has written. A stalled one does not read.
type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func (w *workshop) newJob(fixed ...string) (*job, error) {
	w.made++
	j := &job{w: w, dir: filepath.Join(w.dir, fmt.Sprint(w.made)), tag: fmt.Sprintf("%d-%d", os.Getpid(), w.made), fixed: fixed, patience: patience}
	return j, os.MkdirAll(filepath.Join(j.dir, "tmp"), 0o755)
}

// start starts a job on all hosts, and waits until it trains.
func (w *workshop) start(fixed ...string) (*job, error) {
	j, err := w.newJob(fixed...)
	if err != nil {
		return nil, err
	}
	for i := range w.net.Hosts {
		var number []string
		if i > 0 && !j.elastic() { // whose nodes are numbered as they arrive
			number = []string{"--node-rank", fmt.Sprint(i)}
		}
		if err := j.launch(i, nil, number...); err != nil {
			return j, err
		}
	}
	return j, j.awaitStep(3)
}

// elastic says that the job may have fewer nodes than there are hosts.
func (j *job) elastic() bool { return slices.Contains(j.fixed, "--nnodes") }

// launch starts the launcher of host i, with more flags, whose output goes to out, or to
// its tail.
func (j *job) launch(i int, out *os.File, more ...string) error {
	h := j.w.net.Hosts[i]
	at := fmt.Sprintf("%s:%d", j.w.net.Hosts[0].Addr, port)
	args := []string{j.w.launcher, "-nproc", fmt.Sprint(j.w.nproc), "--rdzv-timeout", "20s"}
	if !j.elastic() {
		args = append(args, "--nnodes", fmt.Sprint(j.w.hosts))
	}
	if i == 0 {
		args = append(args, "--node-rank", "0", "--rdzv-endpoint", at)
	} else {
		args = append(args, "--join", at)
	}
	return j.exec(h, slices.Concat(args, more, j.fixed, j.program()), out)
}

// program is the command line of the ranks.
func (j *job) program() []string {
	args := []string{j.w.train, "--width", "4", "--latent", "4", "--batch", "24", "--samples", "0", "--threads", "1",
		"--check-every", "5", "--ckpt-every", "5", "--steps", "1000000", "--out", "run"}
	return append(args, j.trained...)
}

// exec starts a launcher on a host.
func (j *job) exec(h *netns.Host, args []string, out *os.File) error {
	args = h.Enter(j.dir, args...)
	n := &node{host: h, cmd: exec.Command(args[0], args[1:]...), out: &tail{}, done: make(chan struct{})}
	n.cmd.Env = append(env.Without(os.Environ()), "EBTRAIN_KEY=a secret of the trial, long enough", tagVar+"="+j.tag, "TMPDIR="+filepath.Join(j.dir, "tmp"))
	n.cmd.Stdout, n.cmd.Stderr = io.Writer(n.out), io.Writer(n.out)
	if out != nil {
		n.cmd.Stdout, n.cmd.Stderr = out, out
	}
	n.cmd.WaitDelay = time.Second
	if err := n.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = n.cmd.Wait() // its code says it all
		n.at, n.code = time.Now(), n.cmd.ProcessState.ExitCode()
		if ws, ok := n.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			n.code = exitcode.Signal + int(ws.Signal())
		}
		close(n.done)
	}()
	j.nodes = append(j.nodes, n)
	return nil
}

// steps is how many steps the metrics have.
func (j *job) steps() int64 {
	f, err := os.Open(filepath.Join(j.dir, "run", "metrics.jsonl"))
	if err != nil {
		return 0 // not yet
	}
	defer func() { _ = f.Close() }()
	const last = 8 << 10
	if st, err := f.Stat(); err == nil && st.Size() > last {
		_, _ = f.Seek(-last, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	lines := strings.Split(string(b), "\n")
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		var record struct{ Step int64 }
		if json.Unmarshal([]byte(line), &record) == nil {
			return record.Step + 1
		}
	}
	return 0
}

// awaitStep waits until the metrics have n steps.
func (j *job) awaitStep(n int64) error {
	return j.await(fmt.Sprintf("step %d", n), func() bool { return j.steps() >= n })
}

// awaitSteps waits until n more steps have been made.
func (j *job) awaitSteps(n int64) error { return j.awaitStep(j.steps() + n) }

// await waits until ok, at most for the job's patience, or the end of all launchers.
func (j *job) await(what string, ok func() bool) error {
	for begun := time.Now(); !ok(); time.Sleep(stepWait) {
		switch {
		case j.w.ctx.Err() != nil:
			return context.Cause(j.w.ctx)
		case time.Since(begun) > j.patience:
			return fmt.Errorf("no %s within %v: %s", what, j.patience, j.said())
		case len(j.nodes) > 0 && !slices.ContainsFunc(j.nodes, func(n *node) bool { return !n.ended() }):
			if ok() {
				return nil
			}
			return fmt.Errorf("no %s: the job has ended: %s", what, j.said())
		}
	}
	return nil
}

func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// said is what all launchers have written.
func (j *job) said() string {
	var b strings.Builder
	for i, n := range j.nodes {
		fmt.Fprintf(&b, "\nlauncher %d: %s", i, n.out)
	}
	return b.String()
}

// stop asks the job to stop, which must then end with 75 on all nodes.
func (j *job) stop() error {
	if err := j.nodes[0].cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("node 0 has ended: %s", j.said())
	}
	return nil
}

// rank is a process of a rank.
type rank struct{ rank, node, pid int }

// ranks are the processes of the ranks, by rank.
func (j *job) ranks() []rank {
	var all []rank
	for _, pid := range processes() {
		environ := environOf(pid)
		number, ok := environ["RANK"]
		if !ok || environ[tagVar] != j.tag {
			continue
		}
		r, err1 := strconv.Atoi(number)
		n, err2 := strconv.Atoi(environ["GROUP_RANK"])
		if err1 == nil && err2 == nil {
			all = append(all, rank{r, n, pid})
		}
	}
	slices.SortFunc(all, func(a, b rank) int { return a.rank - b.rank })
	return all
}

// gone is how long after begun the last of ranks had ended.
func (j *job) gone(ranks []rank, begun time.Time) (time.Duration, error) {
	for {
		left := slices.ContainsFunc(ranks, func(r rank) bool { return lives(r.pid) })
		took := time.Since(begun)
		if !left {
			return took, nil
		}
		if j.w.ctx.Err() != nil {
			return took, context.Cause(j.w.ctx)
		}
		if took > j.patience {
			return took, fmt.Errorf("ranks live on: %s", j.said())
		}
		time.Sleep(stepWait)
	}
}

// pause lets d pass, or less if chaos is interrupted, which is an error.
func (w *workshop) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// ends waits for the end of launchers, and is how long after begun the last ended.
func (j *job) ends(nodes []*node, begun time.Time) (last time.Duration, _ error) {
	limit := time.After(j.patience)
	for _, n := range nodes {
		select {
		case <-n.done:
			last = max(last, n.at.Sub(begun))
		case <-j.w.ctx.Done():
			return last, context.Cause(j.w.ctx)
		case <-limit:
			return last, fmt.Errorf("a launcher does not end: %s", j.said())
		}
	}
	return last, nil
}

// end kills whatever is left of the job, and says what that was, and which files and
// ports are.
func (j *job) end() (left []string) {
	for begun := time.Now(); time.Since(begun) < 2*time.Second && len(j.processes()) > 0; {
		time.Sleep(5 * time.Millisecond)
	}
	for _, pid := range j.processes() {
		left = append(left, "process "+commandOf(pid))
		_ = syscall.Kill(pid, syscall.SIGKILL) // our own, by their tag
	}
	for _, n := range j.nodes {
		<-n.done
	}
	for _, h := range j.w.net.Hosts {
		left = append(left, h.Sockets()...)
		if files, err := h.Ask("ls -A /dev/shm"); err != nil || files != "" {
			left = append(left, fmt.Sprintf("/dev/shm of %s: %s", h.Name, strings.Fields(files)))
		}
	}
	tmp, err := os.ReadDir(filepath.Join(j.dir, "tmp"))
	if err != nil {
		left = append(left, err.Error())
	}
	for _, e := range tmp {
		left = append(left, "file "+e.Name())
	}
	seen, _ := filepath.Glob(filepath.Join(j.dir, "run", ".seen-*"))
	if len(seen) > 0 {
		left = append(left, "file "+filepath.Base(seen[0]))
	}
	return left
}

// processes are those of the job.
func (j *job) processes() (all []int) {
	for _, pid := range processes() {
		if environOf(pid)[tagVar] == j.tag && lives(pid) {
			all = append(all, pid)
		}
	}
	return all
}

// processes are all of the machine.
func processes() (all []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// environOf is the environment a process was started with; empty if it has ended.
func environOf(pid int) map[string]string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	all := map[string]string{}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if k, v, ok := strings.Cut(string(kv), "="); ok {
			all[k] = v
		}
	}
	return all
}

func commandOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if errors.Is(err, os.ErrNotExist) {
		return "that has just ended"
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}

// lives says whether a process is there and no zombie.
func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}
