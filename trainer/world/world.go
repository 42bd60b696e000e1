// Package world joins this process to the ranks of its job: its rank from
// launch/rendezvous, its collective.Comm, and one answer for all ranks when any
// of them fails.
//
// It is a part of the mains, which are the one place where the rooms meet. A
// World may be used from any goroutine; Close ends its use.
package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/rendezvous"
)

// symptomWait is how long a rank that lost another leaves it to the launcher
// to say why.
const symptomWait = 2 * time.Second

// World is this process's place among the ranks of its job.
type World struct {
	*rendezvous.Group
	// Comm connects the ranks; nil in a world of one.
	Comm collective.Comm

	where []whereabouts // of each rank
	alone bool          // no launcher and no other rank
	say   func() error  // shows why the job ends, once; nil without Announce
	rest  string        // what there is of the work when the job is asked to stop; "" without Unstopped
	step  atomic.Int64  // for progress reports
	done  chan struct{}
	wg    sync.WaitGroup
}

// Join joins the job that the environment describes, and tells all ranks which processors
// each may run on. Connect must follow before Comm is used.
func Join(ctx context.Context, environ []string) (*World, error) {
	worker, err := env.Parse(environ)
	if err != nil {
		return nil, err
	}
	group, err := rendezvous.Join(ctx, worker)
	if err != nil {
		return nil, err
	}
	w := &World{Group: group, alone: worker.Alone(), done: make(chan struct{})}
	if err := w.findOut(ctx); err != nil {
		return nil, errors.Join(w.Fail(err), w.Close())
	}
	return w, nil
}

// Connect connects the ranks. When the job is aborted, by whomever, every
// collective under way fails with the cause.
func (w *World) Connect(ctx context.Context, log *slog.Logger) error {
	return w.connect(ctx, log, host.Config{Hosts: w.Hosts(), Launchers: w.Nodes()})
}

// ConnectAligned is Connect, but sums have the same bits on whatever hosts the ranks are;
// where hosts have other numbers of ranks than one power of two it is slower.
func (w *World) ConnectAligned(ctx context.Context, log *slog.Logger) error {
	return w.connect(ctx, log, host.Config{Hosts: w.Hosts(), Launchers: w.Nodes(), Aligned: true})
}

// ConnectApart is Connect, but each rank is taken for a host of its own, so that all
// data go over the network, also between ranks of one host: to measure it.
func (w *World) ConnectApart(ctx context.Context, log *slog.Logger) error {
	hosts := make([]string, w.Size())
	for r := range hosts {
		hosts[r] = fmt.Sprintf("rank %d", r)
	}
	return w.connect(ctx, log, host.Config{Hosts: hosts})
}

// connect is Connect by a config that says what the hosts are; the rest it is given.
func (w *World) connect(ctx context.Context, log *slog.Logger, cfg host.Config) error {
	if w.Size() == 1 {
		return nil
	}
	cfg.Rank, cfg.Size, cfg.Job, cfg.Key, cfg.Exchange, cfg.Logger = w.Rank(), w.Size(), w.Job(), w.Key(), w.Exchange, log
	cfg.ListenIP, cfg.FirstPort, cfg.LastPort = w.Addr(), w.Ports().First, w.Ports().Last
	cfg.Progress, cfg.Ended, cfg.Heard = w.began, func(seq uint64, err error) { w.Ended(seq, err != nil) }, w.Heard
	comm, err := host.New(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect the ranks: %w%s", err, noWay(err))
	}
	w.Comm = comm // not before: a nil *host.Comm would make a Comm that is not nil
	w.wg.Go(w.watch)
	w.wg.Go(func() { w.showFlights(comm.Recent, log) })
	return nil
}

// noWay is what to do where the ranks of two hosts do not reach each other, though their
// launchers do; "" if err is another.
func noWay(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); !ok || e.Op != "dial" || e.Net != "tcp" {
		return ""
	}
	return ": if that rank lives, hosts do not reach each other there: ddplaunch --network names an interface by which they do, --port-range ports that a firewall lets through"
}

// began reports a collective that this rank begins.
func (w *World) began(seq uint64, req collective.Request) {
	c := rendezvous.Collective{Seq: seq, Kind: req.Kind.String(), Label: req.Label, Begun: time.Now()}
	switch req.Kind {
	case collective.AllReduce, collective.ReduceScatter:
		c.Op = req.Op.String()
		fallthrough
	case collective.AllGather, collective.Broadcast:
		c.Type, c.Len = req.Vec.Type.String(), req.Vec.Len
	}
	w.Began(c)
	w.Progress(w.step.Load(), c.Kind, seq, c.Label)
}

// showFlights writes the last collectives of this rank to its log, a line each,
// when somebody asks for them.
func (w *World) showFlights(recent func() []collective.Entry, log *slog.Logger) {
	for {
		select {
		case <-w.Flights():
			for _, e := range recent() {
				log.Info("flight", "collective", e.String())
			}
		case <-w.done:
			return
		}
	}
}

// watch ends the collectives when the job ends.
func (w *World) watch() {
	select {
	case <-w.Done():
		w.Comm.Abort(w.Err())
	case <-w.done:
	}
}

// Announce has the program's line about why the job ends, by whomever, shown on out as
// soon as that is known: what a device still computes may take longer than a launcher
// waits before it kills. Exit does not show it again. To be called before Fail.
func (w *World) Announce(program string, out io.Writer) {
	w.say = sync.OnceValue(func() error { return cliflag.Show(program, w.Err(), out) })
	w.wg.Go(func() {
		select {
		case <-w.Done():
			_ = w.say() // Fail returns it
		case <-w.done:
		}
	})
}

// Tell reports what this rank does next, for the case that it is its last.
func (w *World) Tell(step int64, phase string) {
	w.step.Store(step)
	w.Progress(step, phase, 0, "")
}

// Fail tells all ranks that this one failed with err, and returns the reason
// for which the job ends, the same on all ranks: the first failure of any. It
// waits for the launcher's verdict, two seconds at most.
func (w *World) Fail(err error) error { return w.fail(err, w.Abort) }

// FailHere is Fail where err is of this host alone: an elastic job that has run before goes on
// without the host, if the others suffice.
func (w *World) FailHere(err error) error { return w.fail(err, w.raiseHere) }

// raiseHere ends the group, or this host's part in it. Before a job has run, what one host finds
// all may be about to find.
func (w *World) raiseHere(err error) {
	if w.Restart() > 0 {
		w.Unfit(err)
		return
	}
	w.Abort(err)
}

func (w *World) fail(err error, raise func(error)) error {
	if s := w.stopped(err); s != nil {
		if w.Comm != nil {
			w.Comm.Abort(s) // nobody may wait for this rank
		}
		return s
	}
	if w.alone {
		return err
	}
	if lost(err) {
		// What befell another rank: its launcher saw it and says it better.
		select {
		case <-w.Done():
		case <-time.After(symptomWait):
		}
	}
	raise(err)
	<-w.Done()
	if w.say != nil {
		return w.say()
	}
	return w.Err()
}

// Failing tells all ranks, once, that this one fails with err, and ends its collectives.
// It comes before what is closed, which may wait for the other ranks; Fail follows. What
// befell another rank is left to Fail.
func (w *World) Failing(err error) { w.failing(err, w.Abort) }

// FailingHere is Failing where err is of this host alone, as FailHere is Fail.
func (w *World) FailingHere(err error) { w.failing(err, w.raiseHere) }

func (w *World) failing(err error, raise func(error)) {
	if w.alone || lost(err) {
		return
	}
	raise(err)
	<-w.Done()
	if w.Comm != nil {
		w.Comm.Abort(w.Err())
	}
}

// Context is ctx until the job ends, by whomever; then it ends with the cause.
func (w *World) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.wg.Go(func() {
		select {
		case <-w.Group.Done():
			cancel(w.Err())
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil) }
}

// Close leaves the job.
func (w *World) Close() error {
	close(w.done)
	w.wg.Wait()
	var err error
	if w.Comm != nil {
		err = w.Comm.Close()
	}
	return errors.Join(err, w.Group.Close())
}
