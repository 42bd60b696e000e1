package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trial is something that happens to a job.
type trial struct {
	name string
	what string
	long bool // not one of --short
	do   func(w *workshop, r *result) (*job, error)
}

// result is what came of a trial.
type result struct {
	times []measured
	exits []int    // of the launchers that are looked at
	wrong []string // what was not as it must be
	left  []string
}

// measured is a time, and the bar it must not pass; 0 if there is none.
type measured struct {
	name      string
	took, bar time.Duration
}

func (r *result) measure(name string, took, bar time.Duration) {
	r.times = append(r.times, measured{name, took, bar})
}

func (r *result) fault(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *result) String() string {
	var parts []string
	for _, m := range r.times {
		parts = append(parts, fmt.Sprintf("%s %v", m.name, m.took.Round(time.Millisecond)))
	}
	for _, what := range append(slices.Clone(r.wrong), r.left...) {
		parts = append(parts, "NOT: "+what)
	}
	return strings.Join(parts, ", ")
}

var trials = []trial{
	{"kill", "kill -9 of a rank", false, kill},
	{"launcher", "kill -9 of a launcher", false, killLauncher},
	{"node0", "kill -9 of node 0's launcher, of an elastic job", false, killNode0},
	{"stop", "SIGSTOP of a rank", false, stopRank},
	{"cut", "a host's cable is pulled", false, cut},
	{"shrink", "the same, of an elastic job", false, shrink},
	{"grow", "another host comes to an elastic job", true, grow},
	{"narrow", "all links have 2 Mbit/s for 5 s", true, narrow},
	{"disk", "the disk of --out is full", false, fullDisk},
	{"clock", "all processes stand still for 3 s, as with a virtual machine that is moved", true, standstill},
	{"twice", "a launcher too many", true, twice},
	{"late", "the last launcher comes 2 s late", true, late},
	{"replace", "a launcher is killed and started again at once, with --max-restarts 1", false, replace},
	{"reader", "nobody reads node 0's output, then kill -9 of a rank", false, reader},
	{"flood", "a stranger's connections and packets, for 3 s", false, strangers},
	{"busy", "64 busy loops for 5 s", true, busy},
	{"starts", "a start to the third step, at a load of 30", true, busyStart},
}

// list is the trials, for --help.
func list() string {
	var b strings.Builder
	for _, t := range trials {
		fmt.Fprintf(&b, "  %-9s %s\n", t.name, t.what)
	}
	return b.String()
}

// try makes a trial.
func (w *workshop) try(t trial) *result {
	r := &result{}
	j, err := t.do(w, r)
	if err != nil {
		r.fault("%v", err)
	}
	if j != nil {
		r.left = j.end()
		if len(r.wrong) > 0 && err == nil {
			r.fault("%s", j.said())
		}
	}
	return r
}

// verdicts are the sentences in which launchers and ranks name who is to blame.
var verdicts = regexp.MustCompile(`(?m)^(?:ddplaunch:|\[[0-9,-]+\] train:) ((?:rank|node) \d.*)$`)

// closing waits for the end of nodes, which must have code and blame whom pattern
// matches, and nobody else.
func (j *job) closing(r *result, nodes []*node, begun time.Time, code int, pattern string) (time.Duration, error) {
	took, err := j.ends(nodes, begun)
	if err != nil {
		return took, err
	}
	right := regexp.MustCompile(pattern)
	for _, n := range nodes {
		r.exits = append(r.exits, n.code)
		if n.code != code {
			r.fault("exit code %d of %s, want %d", n.code, n.host.name, code)
		}
		said := verdicts.FindAllStringSubmatch(n.out.String(), -1)
		for _, s := range said {
			if !right.MatchString(s[1]) {
				r.fault("%s blames %q", n.host.name, s[1])
			}
		}
		if len(said) == 0 {
			r.fault("%s blames nobody", n.host.name)
		}
	}
	return took, nil
}

// goesOn wants a job that has had trouble to train, to have said nothing about it,
// and to stop when it is asked to.
func (j *job) goesOn(r *result) error {
	if err := j.awaitSteps(3); err != nil {
		return err
	}
	begun := time.Now()
	if err := j.stop(); err != nil {
		return err
	}
	if _, err := j.ends(j.nodes, begun); err != nil {
		return err
	}
	for _, n := range j.nodes {
		r.exits = append(r.exits, n.code)
		if n.code != 75 {
			r.fault("exit code %d of %s, want 75", n.code, n.host.name)
		}
		for _, s := range verdicts.FindAllStringSubmatch(n.out.String(), -1) {
			r.fault("a false alarm of %s: %q", n.host.name, s[1])
		}
	}
	return nil
}

// without is all nodes but one.
func (j *job) without(i int) []*node { return slices.Delete(slices.Clone(j.nodes), i, i+1) }

func kill(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim := ranks[len(ranks)-1-w.made%len(ranks)]
	begun := time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 50*time.Millisecond)
	took, err := j.closing(r, j.nodes, begun, 137, fmt.Sprintf(`^rank %d \(node%d, pid %d\): killed by SIGKILL`, victim.rank, victim.node, victim.pid))
	r.measure("launchers ended", took, 0)
	return j, err
}

func killLauncher(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	// The numbers of nodes follow the names of hosts.
	ranks, victim := j.ranks(), 1+w.made%(w.hosts-1)
	begun := time.Now()
	if err := j.nodes[victim].cmd.Process.Kill(); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 200*time.Millisecond)
	took, err := j.closing(r, j.without(victim), begun, 1, fmt.Sprintf(`^node %d \(node%d\): its launcher was killed, rank`, victim, victim))
	r.measure("launchers ended", took, 0)
	return j, err
}

func killNode0(w *workshop, r *result) (*job, error) {
	j, err := w.start("--nnodes", fmt.Sprintf("2:%d", w.hosts))
	if err != nil {
		return j, err
	}
	ranks, begun := j.ranks(), time.Now()
	if err := j.nodes[0].cmd.Process.Kill(); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 0)
	took, err := j.closing(r, j.nodes[1:], begun, 75, `^node 0 \(node0\): its launcher was killed, ranks? \S+ and the coordinator with it$`)
	r.measure("launchers ended", took, time.Second)
	return j, err
}

func stopRank(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim := ranks[w.made%len(ranks)]
	begun := time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGSTOP); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 2*time.Second)
	took, err := j.closing(r, j.nodes, begun, 1, fmt.Sprintf(`^rank %d \(node%d, pid %d\): stopped by a signal.* for it`, victim.rank, victim.node, victim.pid))
	r.measure("launchers ended", took, 0)
	return j, err
}

func cut(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	victim := w.made % w.hosts
	ranks, begun := j.ranks(), time.Now()
	defer func() { _ = w.net.plug(victim, true) }() // the next trial would say so
	if err := w.net.plug(victim, false); err != nil {
		return j, err
	}
	gone, err := j.gone(slices.DeleteFunc(slices.Clone(ranks), func(k rank) bool { return k.node == victim }), begun)
	if err != nil {
		return j, err
	}
	r.measure("survivors' ranks gone", gone, 1200*time.Millisecond)
	alone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("those of the one cut off", alone, 2*time.Second)
	says := fmt.Sprintf(`^node %d \(node%d\): lost with rank`, victim, victim)
	if _, err := j.closing(r, j.without(victim), begun, 1, says); err != nil {
		return j, err
	}
	says = fmt.Sprintf(`^node %d \(node%d\) reaches none of the other %d nodes$`, victim, victim, w.hosts-1)
	took, err := j.closing(r, j.nodes[victim:victim+1], begun, 1, says)
	r.measure("launchers ended", took, 0)
	return j, err
}

// recovers waits until a job trains in another epoch.
func (j *job) recovers(r *result, begun time.Time, epoch string) error {
	if err := j.await(epoch, func() bool { return strings.Contains(j.nodes[0].out.String(), "ddplaunch: "+epoch) }); err != nil {
		return err
	}
	if err := j.await("ranks of the new epoch", func() bool {
		return slices.ContainsFunc(j.ranks(), func(k rank) bool { return environOf(k.pid)["EBTRAIN_EPOCH"] == "1" })
	}); err != nil {
		return err
	}
	file := filepath.Join(j.dir, "run", "metrics.jsonl")
	before, _ := os.Stat(file)
	if err := j.await("step", func() bool {
		now, err := os.Stat(file)
		return err == nil && (before == nil || now.Size() > before.Size() || now.ModTime().After(before.ModTime()) && now.Size() != before.Size())
	}); err != nil {
		return err
	}
	r.measure("the next step", time.Since(begun), 0)
	return j.awaitSteps(3)
}

// asked stops a job that has lost some nodes.
func (j *job) asked(r *result, nodes []*node) error {
	begun := time.Now()
	if err := j.stop(); err != nil {
		return err
	}
	if _, err := j.ends(nodes, begun); err != nil {
		return err
	}
	for _, n := range nodes {
		r.exits = append(r.exits, n.code)
		if n.code != 75 {
			r.fault("exit code %d of %s, want 75", n.code, n.host.name)
		}
	}
	return nil
}

func shrink(w *workshop, r *result) (*job, error) {
	j, err := w.start("--nnodes", fmt.Sprintf("2:%d", w.hosts))
	if err != nil {
		return j, err
	}
	victim := 1 + w.made%(w.hosts-1)
	begun := time.Now()
	defer func() { _ = w.net.plug(victim, true) }() // the next trial would say so
	if err := w.net.plug(victim, false); err != nil {
		return j, err
	}
	if err := j.recovers(r, begun, fmt.Sprintf("epoch 1: node %d (node%d): lost with rank", victim, victim)); err != nil {
		return j, err
	}
	return j, j.asked(r, j.without(victim))
}

func grow(w *workshop, r *result) (*job, error) {
	j, err := w.newJob("--nnodes", fmt.Sprintf("1:%d", w.hosts))
	if err != nil {
		return j, err
	}
	if err := errors.Join(j.launch(0, nil), j.awaitStep(3)); err != nil {
		return j, err
	}
	begun := time.Now()
	for i := 1; i < w.hosts; i++ {
		if err := j.launch(i, nil); err != nil {
			return j, err
		}
	}
	if err := j.recovers(r, begun, fmt.Sprintf("epoch 1: from 1 to %d nodes, with ", w.hosts)); err != nil {
		return j, err
	}
	return j, j.asked(r, j.nodes)
}

func narrow(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	if err := w.net.narrow(true); err != nil {
		return j, err
	}
	time.Sleep(5 * time.Second)
	if err := w.net.narrow(false); err != nil {
		return j, err
	}
	return j, j.goesOn(r)
}

// fullDisk is of a job of one host, whose disk is its own.
func fullDisk(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	h, run := w.net.hosts[1], filepath.Join(j.dir, "run")
	if err := errors.Join(os.Mkdir(run, 0o755), h.sh("mount -t tmpfs -o size=16m none "+run)); err != nil {
		return j, err
	}
	defer func() { _ = h.sh("umount " + run) }() // it goes with the host
	if err := j.exec(h, append([]string{w.launcher, "-nproc", "2"}, j.program()...), nil); err != nil {
		return j, err
	}
	if err := j.await("checkpoint", func() bool {
		out, err := h.ask("ls " + run + "/ckpt 2>/dev/null | wc -l")
		return err == nil && strings.TrimSpace(out) != "0"
	}); err != nil {
		return j, err
	}
	ranks, begun := j.ranks(), time.Now()
	_ = h.sh("cat /dev/zero >" + run + "/full 2>/dev/null") // until it fails
	if _, err := j.gone(ranks, begun); err != nil {
		return j, err
	}
	took, err := j.closing(r, j.nodes, begun, 1, `^rank \d.*no space left on device`)
	r.measure("launchers ended", took, 0)
	return j, err
}

func standstill(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	all := j.processes()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, pid := range all {
			if err := syscall.Kill(pid, s); err != nil {
				return j, err
			}
		}
		if s == syscall.SIGSTOP {
			time.Sleep(3 * time.Second)
		}
	}
	return j, j.goesOn(r)
}

func twice(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	begun := time.Now()
	if err := j.launch(1, nil); err != nil {
		return j, err
	}
	extra := j.nodes[len(j.nodes)-1]
	took, err := j.ends([]*node{extra}, begun)
	if err != nil {
		return j, err
	}
	r.measure("it is refused", took, 0)
	if extra.code != 1 || !strings.Contains(extra.out.String(), "the coordinator refuses this node: the job is already complete and running") {
		r.fault("the one too many ended with %d: %s", extra.code, extra.out)
	}
	j.nodes = j.nodes[:len(j.nodes)-1]
	return j, j.goesOn(r)
}

func late(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	for i := range w.net.hosts {
		if i == w.hosts-1 {
			time.Sleep(2 * time.Second)
		}
		if err := j.launch(i, nil); err != nil {
			return j, err
		}
	}
	if err := j.awaitStep(3); err != nil {
		return j, err
	}
	return j, j.goesOn(r)
}

func replace(w *workshop, r *result) (*job, error) {
	j, err := w.start("--max-restarts", "1")
	if err != nil {
		return j, err
	}
	begun := time.Now()
	if err := j.nodes[1].cmd.Process.Kill(); err != nil {
		return j, err
	}
	if err := j.launch(1, nil); err != nil {
		return j, err
	}
	if err := j.recovers(r, begun, "restart 1: node 1 (node1): its launcher was killed, rank"); err != nil {
		return j, err
	}
	return j, j.asked(r, j.without(1))
}

func reader(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	unread, out, err := os.Pipe()
	if err != nil {
		return j, err
	}
	defer func() { _ = errors.Join(unread.Close(), out.Close()) }() // nobody reads it
	j.trained = []string{"--print-every", "1"}
	for i := range w.net.hosts {
		to := out
		if i > 0 {
			to = nil
		}
		if err := j.launch(i, to); err != nil {
			return j, err
		}
	}
	// Fill the pipe, as a long run would have.
	if err := j.awaitStep(3); err != nil {
		return j, err
	}
	if err := fill(out); err != nil {
		return j, err
	}
	if err := j.awaitSteps(5); err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim, begun := ranks[len(ranks)-1], time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 50*time.Millisecond)
	if _, err := j.closing(r, j.nodes[1:], begun, 137, fmt.Sprintf(`^rank %d \(node%d, pid %d\): killed by SIGKILL`, victim.rank, victim.node, victim.pid)); err != nil {
		return j, err
	}
	took, err := j.ends(j.nodes[:1], begun)
	r.measure("launchers ended", took, 0)
	r.exits = append(r.exits, j.nodes[0].code)
	if j.nodes[0].code != 137 {
		r.fault("exit code %d of node 0, want 137", j.nodes[0].code)
	}
	return j, err
}

// fill writes to a pipe until it is full.
func fill(out *os.File) error {
	line := []byte(strings.Repeat("-", 99) + "\n")
	ready := []unix.PollFd{{Fd: int32(out.Fd()), Events: unix.POLLOUT}}
	for {
		switch n, err := unix.Poll(ready, 100); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return nil
		default: // there is room for a short line
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
}

func strangers(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	h := w.net.hosts[w.hosts-1]
	args := h.enter(j.dir, w.self)
	cmd := exec.CommandContext(w.ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", floodVar, w.net.hosts[0].addr, port))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return j, fmt.Errorf("the flood: %w: %s", err, out)
	}
	return j, j.goesOn(r)
}

// spin keeps all processors busy with n loops, until the function it returns is
// called.
func spin(n int) func() {
	var all []*exec.Cmd
	for range n {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if c.Start() == nil { // fewer will do
			all = append(all, c)
		}
	}
	return func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
}

func busy(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	calm := spin(64)
	time.Sleep(5 * time.Second)
	calm()
	return j, j.goesOn(r)
}

func busyStart(w *workshop, r *result) (*job, error) {
	const full = 30
	now, err := strconv.ParseFloat(load(), 64)
	if err != nil {
		return nil, err
	}
	calm := spin(max(0, full-int(now)))
	defer calm()
	begun := time.Now()
	j, err := w.start()
	if err != nil {
		return j, err
	}
	r.measure("the third step", time.Since(begun), 0)
	return j, j.goesOn(r)
}
