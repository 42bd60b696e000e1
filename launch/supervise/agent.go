package supervise

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/binding"
	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
)

// Config describes one launcher's part of a job.
type Config struct {
	Name    string   // of this program, in front of what it says
	Program string   // path of the program each rank runs
	Args    []string // its arguments, without its name
	Environ []string // environment of the ranks, to which theirs is added

	Node        rendezvous.NodeConfig
	Coordinator *rendezvous.CoordinatorConfig // on node 0 only
	Transport   Transport                     // nil if there is one node

	RunID       string
	MaxRestarts int
	ErrorFile   string // the launcher's own, see ErrorFileVar; "" for none

	// Local is the number of the first rank among all of this host, and Locals how
	// many those are, where other launchers have started some; else both are 0.
	Local, Locals int
	// Places are where the ranks of this launcher are to run, by local number; nil where
	// they may anywhere. Each has its share of threads (ThreadsVar), if Environ says nothing.
	Places []binding.Place

	Output  Output
	Stdout  *outlet.Writer
	Stderr  *outlet.Writer
	TTY     bool             // Stdout and Stderr are a terminal
	Draws   bool             // it can be drawn on: not one that TERM calls dumb
	Gather  bool             // with several nodes, node 0 shows the ranks' lines of all
	Color   bool             // the terminal shows colours
	Columns func() int       // measures the terminal, 0 if its width is not known; nil if there is none
	Resized <-chan os.Signal // says that Columns has changed

	Signals <-chan os.Signal // the first asks all ranks to stop, the second kills them
	Ending  <-chan Ending    // says that the job's time is about to end: all ranks are asked to stop; on node 0
	Flight  <-chan os.Signal // asks what all ranks did last
	Log     *slog.Logger
}

// Transport carries messages between launchers.
type Transport interface {
	// Send queues a message and never blocks; "" is the coordinator. Messages
	// to one launcher arrive in order, if it is reachable.
	Send(to string, m rendezvous.Message)
	// Hint sends a message that may be lost, at once or not at all.
	Hint(to string, m rendezvous.Message)
	// Vouch gives the transport a way to learn of signs of life of a launcher's
	// node that it does not see itself. lately may be called from any goroutine.
	Vouch(lately func(name string) bool)
	// Formed says that the job is complete, of so many launchers.
	Formed(launchers int)
	// Inbox delivers messages, and the news of lost launchers. It is never closed.
	Inbox() <-chan rendezvous.Inbound
	// Close delivers what is queued, within a second or so, and leaves.
	Close() error
}

// leastThreads is how many threads of a launcher may run at once.
const leastThreads = 4

// agent is the running launcher. Only the goroutine of Run touches it, except
// where said.
type agent struct {
	cfg   Config
	node  *rendezvous.Node
	coord *rendezvous.Coordinator

	spawner *spawner
	guard   *guard
	console *console
	memory  *oomWatch
	procs   []*process // of the current epoch, by local rank; nil if it did not start

	job     string                // of the current epoch, as in its ranks' environment
	size    int                   // ranks of the current epoch, of all nodes
	nodes   []rendezvous.NodeInfo // of the current epoch
	quiet   map[string]bool       // launchers that have no more lines
	untaken []rendezvous.Inbound  // lines of other nodes, for which there was no room yet
	room    <-chan time.Time      // when to look for it again; nil if there are none
	table   []string              // of a failure, not shown yet
	orphan  bool                  // no other launcher is reached, or that of node 0 does not answer
	behind  map[int]bool          // ranks, by pid, that do not end
	signs   *signs                // of life, of other nodes
	looked  time.Time             // when the ranks were last looked at

	unwritten bool // the output cannot be written, though somebody reads it

	events chan func()   // posted by other goroutines
	quit   chan struct{} // closed when Run takes no more events
	soon   []func()      // to be done before the next event
	wg     sync.WaitGroup
	finish *rendezvous.Finish
}

// Run starts the ranks and returns when all of them, on this node, have ended:
// the exit code (the first failed rank's; 0 if all ended well; 75
// if they stopped early, cleanly). The cause of a failure has then been
// written to Stderr. An error means that supervision itself did not work. When
// ctx ends, Run acts as on a SIGTERM.
func Run(ctx context.Context, cfg Config) (code int, err error) {
	a := newAgent(cfg)
	if err := adopt(); err != nil {
		return 1, err
	}
	if runtime.GOMAXPROCS(0) < leastThreads {
		runtime.GOMAXPROCS(leastThreads) // one may stand still, see undisturbed
	}
	a.spawner = newSpawner()
	defer a.spawner.Close()
	if a.guard, err = startGuard(a.spawner); err != nil {
		return 1, err
	}
	a.memory = newOOMWatch("")
	a.memory.refresh(time.Now())
	a.openConsole()
	if err := cfg.Output.removeErrors(); err != nil {
		cfg.Log.Warn("reasons of earlier failures are left where those of this job are to be", "error", err)
	}
	a.loop(ctx)
	err = a.letGo()
	err = errors.Join(err, a.sayEnd())
	if gerr := a.guard.Close(); gerr != nil {
		cfg.Log.Warn("the guard has ended before the job, which does not matter any more", "error", gerr)
	}
	return a.code(), err
}

func newAgent(cfg Config) *agent {
	a := &agent{
		cfg: cfg, node: rendezvous.NewNode(cfg.Node), events: make(chan func()), quit: make(chan struct{}),
		signs: &signs{}, quiet: map[string]bool{}, behind: map[int]bool{},
	}
	if cfg.Coordinator != nil {
		a.coord = rendezvous.NewCoordinator(*cfg.Coordinator)
	}
	if cfg.Transport != nil {
		cfg.Transport.Vouch(a.signs.lately)
	}
	return a
}

// openConsole is where lines go from now on.
func (a *agent) openConsole() {
	cfg := &a.cfg
	shown := 0 // ranks with a stream on the console
	for local := range cfg.Node.Info.Nproc {
		if cfg.Output.toConsole(local, stdout) || cfg.Output.toConsole(local, stderr) {
			shown++
		}
	}
	a.console = newConsole(cfg.Stdout, cfg.Stderr, cfg.TTY, cfg.Columns, shown)
	a.console.draws, a.console.color = cfg.Draws, cfg.Color
	a.console.name = cfg.Name
	if cfg.gathers() && a.coord == nil {
		a.console.forward = &forwarder{send: func(m rendezvous.Message) { cfg.Transport.Send("", m) }}
	}
	a.wg.Go(a.watchReader)
}

// letGo lets go of the ranks, which have ended, and of the other launchers. Nothing is posted
// any more then.
func (a *agent) letGo() (err error) {
	a.endLeft()
	if a.cfg.gathers() {
		err, a.procs = release(a.procs), nil
		a.gatherRest()
	}
	if a.cfg.Transport != nil {
		err = errors.Join(err, a.cfg.Transport.Close())
	}
	close(a.quit)
	err = errors.Join(err, release(a.procs))
	a.wg.Wait()
	return err
}

// sayEnd says how the job has ended, where that has not been said, and writes what is left.
func (a *agent) sayEnd() error {
	a.sayTable()
	if c := a.finish.Cause; c != nil && !a.saidByNode0(c) {
		a.console.conclude(c, filepath.Base(a.cfg.Program))
	}
	return errors.Join(within(lastWait, ErrorFileVar, func() error { return a.keepError(a.finish.Cause) }), a.console.flush())
}

// loop handles events until the node's state machine is finished.
func (a *agent) loop(ctx context.Context) {
	var inbox <-chan rendezvous.Inbound
	if a.cfg.Transport != nil {
		inbox = a.cfg.Transport.Inbox()
	}
	if a.coord != nil {
		a.apply(a.coord.Start())
	}
	a.apply(a.node.Start())
	canceled := ctx.Done()
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	for {
		for len(a.soon) > 0 && a.finish == nil {
			a.doNext()
		}
		if a.finish != nil {
			a.deliverRest()
			if a.coord == nil || !a.coord.AwaitsFlight() && !a.coord.AwaitsOthers() {
				return
			}
		}
		select {
		case f := <-a.events:
			f()
		case in := <-inbox:
			a.inbound(in)
		case s := <-a.cfg.Signals:
			if n, ok := s.(unix.Signal); ok {
				a.apply(a.node.Interrupt(unix.SignalName(n), int(n)))
			}
			if a.finish != nil && a.coord != nil {
				a.coord.WaitNoMore()
			}
		case now := <-looks.C:
			a.watchMemory(now)
			reapOrphans(a.known())
			a.watchRanks(now)
			a.watchNodes(now)
		case <-a.room:
			a.takeLines()
		case e := <-a.cfg.Ending:
			a.ending(e)
		case <-a.cfg.Flight:
			a.apply(a.node.Flight())
		case <-a.cfg.Resized:
			a.resized()
		case <-canceled:
			canceled = nil
			a.apply(a.node.Interrupt("SIGTERM", int(unix.SIGTERM)))
		}
	}
}

// deliverRest gives the coordinator what this node has still sent it, so that
// the other nodes hear of it.
func (a *agent) deliverRest() {
	for len(a.soon) > 0 {
		a.doNext()
	}
}

// doNext does the first of what is to be done before the next event.
func (a *agent) doNext() {
	f := a.soon[0]
	a.soon = a.soon[1:]
	f()
}

func (a *agent) inbound(in rendezvous.Inbound) {
	if a.cfg.gathers() && a.heardLines(in) {
		return
	}
	switch {
	case in.Alone && a.coord != nil: // which tells this node what follows
		a.apply(a.coord.Alone(in.From))
	case in.Alone:
		a.apply(a.node.Alone())
	case in.Lost:
		if a.coord != nil {
			a.apply(a.coord.Lost(in.From, in.How))
		}
		if in.Coordinator {
			a.apply(a.node.Lost(in.How))
		}
	case a.coord != nil:
		a.apply(a.coord.Receive(in.From, in.Msg))
	default:
		a.apply(a.node.Receive(in.Msg))
	}
}

// apply carries out effects.
func (a *agent) apply(effects []rendezvous.Effect) {
	for _, e := range effects {
		a.cfg.Log.Debug("effect", "effect", e) // written out only if it is wanted
		switch e := e.(type) {
		case rendezvous.Send:
			a.send(e)
		case rendezvous.SetTimer:
			time.AfterFunc(e.After, func() { a.post(func() { a.expired(e.Timer) }) })
		case rendezvous.StartWorkers:
			if a.cfg.Transport != nil {
				a.cfg.Transport.Formed(len(e.Nodes))
			}
			a.startAll(e)
		case rendezvous.Tell:
			a.tell(e)
		case rendezvous.Signal:
			a.signal(e)
		case rendezvous.Abandon:
			for _, local := range e.Locals {
				a.abandon(local)
			}
		case rendezvous.TakeFlight:
			a.takeFlight(e)
		case rendezvous.ShowFlight:
			a.showFlight(e)
		case rendezvous.Note:
			a.console.say(e.Text)
		case rendezvous.Finish:
			a.finish = &e
			a.orphan = a.orphan || a.node.Deserted()
		}
	}
}

// expired says that a timer has run out, to both state machines: each knows its own.
func (a *agent) expired(t rendezvous.Timer) {
	if a.coord != nil {
		a.apply(a.coord.Expired(t))
	}
	a.apply(a.node.Expired(t))
}

// tell gives a message to one rank, or to all of this node.
func (a *agent) tell(e rendezvous.Tell) {
	if e.Msg.Kind == rendezvous.KindAbort {
		a.console.ending()
	}
	for _, p := range a.procs {
		if p != nil && (e.Local < 0 || e.Local == p.local) {
			p.out.put(e.Msg)
		}
	}
}

// signal sends a signal to the process groups of some ranks.
func (a *agent) signal(e rendezvous.Signal) {
	for _, local := range e.Locals {
		if p := a.procs[local]; p != nil {
			signalGroup(p.cmd.Process.Pid, unix.Signal(e.Number))
		}
	}
}

// send carries a message to the coordinator or a node; those in this process
// get it before the next event.
func (a *agent) send(e rendezvous.Send) {
	self := a.cfg.Node.Info.Name
	switch {
	case e.To == "" && a.coord != nil:
		a.soon = append(a.soon, func() { a.apply(a.coord.Receive(self, e.Msg)) })
	case e.To == self:
		a.soon = append(a.soon, func() { a.apply(a.node.Receive(e.Msg)) })
	case a.cfg.Transport != nil && e.Msg.Kind == rendezvous.KindVitals:
		a.cfg.Transport.Hint(e.To, e.Msg)
	case a.cfg.Transport != nil:
		a.cfg.Transport.Send(e.To, e.Msg)
	}
}

// post hands f to the loop; after the loop has ended it does nothing. Any
// goroutine may call it.
func (a *agent) post(f func()) {
	select {
	case a.events <- f:
	case <-a.quit:
	}
}
