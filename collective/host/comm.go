package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// Sizes in bytes.
const (
	localChunk = 1 << 20 // of a half stage with one host: stays in the second-level cache
	netChunk   = 4 << 20 // with several: enough to fill a fast network
	small      = 8 << 10 // up to here every rank reduces everything itself, after one barrier
)

// Comm is one rank's end of a group. It implements collective.Comm.
type Comm struct {
	rank, size int
	topo       topology
	log        *slog.Logger
	progress   func(uint64, collective.Kind, string)
	recorder   *collective.Recorder

	star  *star  // nil when this rank is alone on its host
	mesh  *mesh  // nil unless this rank leads one of several hosts
	arena *arena // nil when Size is 1

	current
	spins    int           // loads before a caller that waits sleeps
	complete atomic.Uint64 // collectives that are complete: queue.done for those without mu

	wake    chan struct{} // capacity 1: there is something to run, or Close
	ended   chan struct{} // closed when the runner has ended
	readers sync.WaitGroup

	mu       sync.Mutex // guards the rest
	queue    queue
	busy     bool  // somebody runs the queue, or begins its head
	begun    bool  // the head's begin is done
	broken   error // how the first collective that failed ended, and all after it
	asleep   []*sleeper
	spare    []*sleeper // for reuse
	failed   *failure
	failing  chan struct{} // closed when failed is set
	closed   bool
	released chan struct{} // closed when Close is done
	segments []*segment    // from Alloc

	// life is held for reading by whoever may touch the arena from outside
	// the Comm's own goroutines, and for writing to unmap it.
	life   sync.RWMutex
	mapped bool
}

// current is what belongs to the collective under way. Who is busy uses it; it
// is made once for all collectives, so that none allocates.
type current struct {
	round   uint64 // rounds of staging so far, the same on every rank
	vec     vector // of this rank
	half    uint64 // which of the two cells of a slot
	gate    gate   // of publish
	headers []localHeader
	views   [][]byte // one for each local rank,
	tiles   [][]byte // and again
	scratch reduce.Scratch
}

var _ collective.Comm = (*Comm)(nil)

func newComm(cfg Config) *Comm {
	c := &Comm{
		rank: cfg.Rank, size: cfg.Size,
		topo:     newTopology(cfg.Rank, cfg.Hosts),
		log:      cfg.Logger.With("rank", cfg.Rank),
		progress: cfg.Progress,
		recorder: collective.NewRecorder(cfg.Recorded),
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		failing:  make(chan struct{}),
		released: make(chan struct{}),
		mapped:   true,
	}
	locals := len(c.topo.locals())
	c.headers = make([]localHeader, locals)
	c.views, c.tiles = make([][]byte, locals), make([][]byte, locals)
	if runtime.NumCPU() >= locals {
		c.spins = spins
	}
	return c
}

// Rank is this process's number.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks in the group.
func (c *Comm) Size() int { return c.size }

// Recent is what the flight recorder holds, oldest first. It may be called at
// any time, also after Close.
func (c *Comm) Recent() []collective.Entry { return c.recorder.Recent() }

// makeArena makes or receives the memory through which the host's ranks meet.
func (c *Comm) makeArena(ctx context.Context) error {
	ranks, chunk := len(c.topo.locals()), localChunk
	bytes := partialAt(ranks, chunk)
	if !c.topo.oneHost() {
		chunk = netChunk
		bytes = arenaBytes(ranks, chunk)
	}
	var seg *segment
	var err error
	switch {
	case ranks == 1:
		seg, err = privateSegment(bytes)
	case c.topo.leads():
		seg, err = c.star.share("ebtrain collective", 1, bytes)
	default:
		seg, err = c.receiveArena(ctx, bytes)
	}
	if err != nil {
		return err
	}
	c.arena = newArena(seg, ranks, chunk, c.spins)
	return nil
}

func (c *Comm) receiveArena(ctx context.Context, bytes int) (*segment, error) {
	stop := context.AfterFunc(ctx, func() { c.star.conns[0].SetReadDeadline(time.Unix(1, 0)) })
	p, err := c.star.receive(0)
	if !stop() {
		err = errors.Join(err, context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("receive shared memory from rank %d: %w", c.topo.leader(), err)
	}
	if p.file == nil {
		return nil, fmt.Errorf("receive shared memory from rank %d: it aborted: %s", c.topo.leader(), p.record.text)
	}
	defer p.file.Close()
	return mapSegment(p.file, 1, bytes)
}

// start lets the goroutines go.
func (c *Comm) start() {
	if c.star != nil {
		for l := range c.star.conns {
			if c.star.conns[l] != nil {
				c.readers.Go(func() { c.watchLocal(l) })
			}
		}
	}
	if c.mesh != nil {
		for _, l := range c.mesh.links {
			if l != nil {
				c.readers.Go(l.fill)
				c.readers.Go(func() { c.watchLink(l) })
			}
		}
	}
	go c.run()
}

// watchLocal reads what local rank l says until it is gone.
func (c *Comm) watchLocal(l int) {
	for {
		p, err := c.star.receive(l)
		switch {
		case err != nil:
			if c.arena.slot(l).left.Load() == 0 {
				c.lost(c.topo.locals()[l], "its process has ended", err)
			}
			return
		case p.file != nil:
			select {
			case c.star.files <- p.file: // perhaps after the one before is taken
			case <-c.ended: // nobody wants it
				p.file.Close()
			}
		default:
			c.fail(&failure{record: p.record, remote: true})
		}
	}
}

// watchLink reads what the leader at the other end of l says until it is gone.
func (c *Comm) watchLink(l *link) {
	r, err := l.listen()
	switch {
	case err == nil:
		c.fail(&failure{record: r, remote: true})
	case errors.Is(err, errFarewell):
		l.left.Store(true)
	default:
		c.lost(l.rank, "its connection ended", err)
	}
}

// lost fails the group because peer is gone. It does nothing after Close.
func (c *Comm) lost(peer int, how string, err error) {
	text := fmt.Sprintf("rank %d: %s", peer, how)
	if err != nil && !errors.Is(err, io.EOF) {
		text += ": " + err.Error()
	}
	c.fail(&failure{record: record{code: codePeerLost, rank: c.rank, peer: peer, text: text}})
}

// fail ends the group, here and on every rank that can be reached. Only the
// first failure counts.
func (c *Comm) fail(f *failure) {
	c.life.RLock()
	defer c.life.RUnlock()
	if !c.mapped || !c.note(f) {
		return
	}
	if c.arena != nil {
		c.arena.abort(f.record)
	}
	if c.star != nil && !c.topo.leads() {
		if err := c.star.tell(f.record); err != nil {
			c.log.Debug("abort not sent", "to_rank", c.topo.leader(), "err", err)
		}
	}
	if c.mesh != nil {
		for _, l := range c.mesh.links {
			if l == nil {
				continue
			}
			if err := l.sayAbort(f.record); err != nil {
				c.log.Debug("abort not sent", "to_rank", l.rank, "err", err)
			}
		}
		c.mesh.interrupt()
	}
}

// note keeps f if it is the first failure, and says whether it is.
func (c *Comm) note(f *failure) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil || c.closed && c.idle() {
		return false
	}
	c.failed = f
	close(c.failing)
	return true
}

// failure is why the group ended, nil while it has not.
func (c *Comm) failure() *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Abort ends the group. See collective.Comm.
func (c *Comm) Abort(cause error) { c.fail(abortedBy(c.rank, cause)) }

// Close releases the group. See collective.Comm. Memory from Alloc is gone
// afterwards: touching it is a fault.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.released
		return nil
	}
	c.closed = true
	pending := uint64(0)
	if !c.idle() {
		pending = c.queue.next - c.queue.done
	}
	c.mu.Unlock()
	defer close(c.released)
	if pending > 0 {
		c.fail(abortedBy(c.rank, fmt.Errorf("%w by rank %d with %d collectives pending", collective.ErrClosed, c.rank, pending)))
	}
	c.signal()
	<-c.ended
	if c.arena != nil {
		c.arena.leave(c.topo.local)
	}
	if c.mesh != nil {
		for _, l := range c.mesh.links {
			if l == nil {
				continue
			}
			if err := l.say([]byte{controlFarewell}); err != nil {
				c.log.Debug("farewell not sent", "to_rank", l.rank, "err", err)
			}
			close(l.recv)
		}
	}
	return c.release()
}

// release closes connections, waits for their readers and unmaps memory.
func (c *Comm) release() error {
	if c.star != nil {
		c.star.close()
	}
	if c.mesh != nil {
		c.mesh.close()
	}
	c.readers.Wait()
	if c.star != nil {
		select {
		case f := <-c.star.files:
			f.Close()
		default:
		}
	}
	c.life.Lock()
	defer c.life.Unlock()
	c.mapped = false
	var errs []error
	if c.arena != nil {
		errs = append(errs, c.arena.seg.unmap())
	}
	for _, s := range c.segments {
		errs = append(errs, s.unmap())
	}
	c.segments = nil
	return errors.Join(errs...)
}
