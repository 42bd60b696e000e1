package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
)

// startAll starts the ranks of an epoch, after releasing those of the last.
func (a *agent) startAll(e rendezvous.StartWorkers) {
	a.endLeft()
	a.releaseSoon()
	a.sayTable()
	a.console.begin()
	a.signs.begin(e.Nodes)
	a.job, a.size, a.nodes = e.Job, rendezvous.Size(e.Nodes), e.Nodes
	if err := a.guard.expect(e.Job); err != nil {
		a.cfg.Log.Warn("orphans may survive a SIGKILL of the launcher", "error", err)
	}
	if a.cfg.gathers() && a.coord != nil {
		a.console.expect(a.size)
	}
	n := e.Nodes[e.Self].Nproc
	a.procs = make([]*process, n)
	until := time.Now().Add(fileWait)
	for local := range n {
		w := env.Worker{
			Rank: rendezvous.Base(e.Nodes, e.Self) + local, Size: rendezvous.Size(e.Nodes),
			LocalRank: a.cfg.Local + local, LocalSize: max(n, a.cfg.Locals), Node: e.Self,
			MasterAddr: e.Nodes[0].Addr, MasterPort: e.Nodes[0].Port,
			RunID: a.cfg.RunID, Restart: e.Epoch, MaxRestarts: a.cfg.MaxRestarts, Group: e.Job,
			Terminal: a.cfg.Draws && a.cfg.Output.toConsole(local, stderr),
		}
		p, err := a.startOne(w, local, until)
		if err != nil {
			a.apply(a.node.StartFailed(local, advised(err)))
			continue
		}
		a.apply(a.node.Started(local, p.cmd.Process.Pid))
	}
}

// advised adds to why a process does not start what can be done about it, where the system's
// words do not tell.
func advised(err error) error {
	var of *fs.PathError
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: allow ddplaunch more of them (ulimit -n)", err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w: allow this user, or its container, more processes (ulimit -u)", err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%w: want a program of this kind of machine, or a script that begins with #! and its interpreter", err)
	case errors.Is(err, unix.ENOENT) && errors.As(err, &of) && executable(of.Path) == nil:
		return fmt.Errorf("%w: it is there, and what is to run it is not: the interpreter behind #! in its first line, or the loader that it was linked for", err)
	}
	return err
}

// startOne starts a rank. No file is waited for after until.
func (a *agent) startOne(w env.Worker, local int, until time.Time) (*process, error) {
	cmd := exec.Command(a.cfg.Program, a.cfg.Args...)
	cmd.Env = a.environ(w, until)
	var log *logFile
	if o := a.cfg.Output; o.toFile(local, stdout) || o.toFile(local, stderr) {
		var err error
		say := func(text string) { a.console.say(fmt.Sprintf("log of rank %d: %s", w.Rank, text)) }
		if log, err = openLog(o.Dir, w.Rank, until, say); err != nil {
			return nil, err
		}
	}
	var cpus *unix.CPUSet
	if a.cfg.Places != nil {
		place := &a.cfg.Places[local]
		cpus, cmd.Env = &place.CPUs, SetDefault(cmd.Env, ThreadsVar, strconv.Itoa(place.Threads()))
		a.cfg.Log.Debug("a rank is bound", "rank", w.Rank, "processors", place)
	}
	p, err := launch(a.spawner, cmd, cpus, w, local, a.columns(w.Rank))
	if err != nil {
		if log != nil {
			err = errors.Join(err, log.close())
		}
		return nil, err
	}
	p.rank, p.log = w.Rank, log
	a.procs[local] = p
	if err := a.guard.add(cmd.Process.Pid); err != nil {
		a.cfg.Log.Warn("orphans may survive a SIGKILL of the launcher", "error", err)
	}
	for stream := range p.pipes {
		p.drained.Go(func() { a.carry(p, w.Rank, stream) })
	}
	a.wg.Go(func() { p.out.run(p.conn) })
	a.wg.Go(func() { p.listen(func(m rendezvous.Message) { a.postFrom(p, m) }) })
	a.wg.Go(func() { a.awaitOne(p) })
	return p, nil
}

func (a *agent) postFrom(p *process, m rendezvous.Message) {
	a.post(func() {
		if a.procs[p.local] == p && !p.over { // the node may know of none any more
			a.apply(a.node.FromWorker(p.local, m))
		}
	})
}

func (a *agent) awaitOne(p *process) {
	var exit rendezvous.Exit
	var err error
	ended := make(chan struct{})
	go func() { // which an abandoned rank keeps for ever
		defer close(ended)
		exit, err = p.wait()
	}()
	select {
	case <-ended:
	case <-p.abandoned:
		return
	}
	if gerr := a.guard.remove(p.cmd.Process.Pid); gerr != nil {
		a.cfg.Log.Warn("orphans may survive a SIGKILL of the launcher", "error", gerr)
	}
	if err != nil {
		a.cfg.Log.Error("a rank was lost from sight", "local_rank", p.local, "error", err)
		exit.Code = max(1, exit.Code)
	}
	if exit.Code != 0 && exit.Code != exitcode.Requeue || exit.Signal != "" {
		a.console.ending()
	}
	a.post(func() {
		p.over = true
		if exit.SignalNumber == int(unix.SIGKILL) {
			exit.Why = a.outOfMemory(p, time.Now())
		}
		p.exit = exit
		a.apply(a.node.Exited(p.local, exit))
	})
}

// release closes what is held of ended ranks, after their output is out.
func release(ranks []*process) error {
	errs := make([]error, len(ranks))
	var all sync.WaitGroup
	for i, p := range ranks {
		if p != nil {
			all.Go(func() { errs[i] = p.close() })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// releaseSoon releases the ranks of the last epoch. The job goes on meanwhile: somebody may
// read their output slowly.
func (a *agent) releaseSoon() {
	last := a.procs
	released := make(chan struct{})
	a.wg.Go(func() {
		defer close(released)
		if err := release(last); err != nil {
			a.cfg.Log.Warn("ranks of the last epoch", "error", err)
		}
	})
	select {
	case <-released:
	case <-time.After(drainWait):
	}
}
