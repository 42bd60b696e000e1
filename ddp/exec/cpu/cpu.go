// Package cpu runs graphs on the processor. It computes next to nothing itself:
// it says which kernel does a step, where its operands lie, and when it runs. Fused
// groups are those of package pointwise, convolutions and matrix products an
// engine's (package linalg/winograd in front of dnnl or native), everything else
// those of package moves; its own are plain loops in Go for products in float64.
//
// One goroutine, locked to its OS thread, compiles and runs the programs of a
// backend, one step after the other; inside a step a kernel uses all threads.
// The parts of the work are fixed, so the same inputs and the same number of
// threads give the same bits. A run allocates no memory.
//
// All pointers of a program are fixed when it is compiled:
//
//	arena      ┌ value ┬ value ──┬ value ┬ scratch of a step ┐   shared by lifetime
//	bucket     ┌ gradient ┬ gradient ┬ …                         from the Comm, reduced in place
//	inputs, outputs, variables                                   host tensors of their own
//	lane       ┌ buffers of a fused group ┐                      one a thread, for all groups
//
// With Config.BF16, convolutions and matrix products may round their operands to
// bfloat16, multiply those and add up in float32, or do what is as exact and
// faster: see package winograd. Everything else stays as it is: values in memory,
// master weights, sums, statistics, losses and what the ranks exchange are float32.
// Products with a vector stay float32 too.
//
// Invariants: reductions add up in float64, and ScatterAdd and pools in their own type;
// images lie in channels-last order.
//
// Concurrency: a Backend may be used from several goroutines; runs of its
// programs take turns. See package exec for Programs and Vars.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"ebtrain/collective"
	"ebtrain/collective/subnormal"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// Config is how a backend is made.
type Config struct {
	// Threads is the number of threads that share the work of a step; 0 means
	// as many as the process may use.
	Threads int
	// Engine does convolutions and matrix products; nil means the best there is:
	// oneDNN where this program was built for it and finds it, plain Go otherwise
	// (see Notice). The backend closes it.
	Engine engine.Engine
	// BF16 lets float32 convolutions and matrix products multiply as inexactly as
	// bfloat16.
	// New fails with ErrNoBF16 where the engine or the processor cannot.
	//
	// The choice is the caller's for a whole backend: a loss that is itself made
	// of derivatives (score matching) loses more by rounding than one of values,
	// and should ask for it expressly.
	BF16 bool
}

// ErrNoBF16 is in the error of New where Config.BF16 asks for what there is not.
var ErrNoBF16 = errors.New("no bf16")

// Backend implements exec.Backend.
type Backend struct {
	threads int
	bf16    bool
	eng     engine.Engine
	notice  string
	jobs    *threads.Jobs
	calls   chan func()
	done    chan struct{}
	close   sync.Once
	err     error // of closing the engine
}

// New starts a backend.
func New(c Config) (*Backend, error) { return start(c, threads.Grain) }

// start starts a backend that shares work of at least that many operations.
func start(c Config, grain int) (*Backend, error) {
	if c.Threads < 0 {
		return nil, fmt.Errorf("cpu: want at least one thread, got %d", c.Threads)
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	b := &Backend{threads: c.Threads, bf16: c.BF16, eng: c.Engine, calls: make(chan func(), 16), done: make(chan struct{})}
	ready := make(chan error)
	go b.loop(ready, grain)
	if err := <-ready; err != nil {
		return nil, err
	}
	return b, nil
}

// loop owns the engine and runs the programs, on one OS thread.
func (b *Backend) loop(ready chan<- error, grain int) {
	runtime.LockOSThread() // and never unlocked: what is set below ends with the thread
	subnormal.Flush()
	defer close(b.done)
	team := threads.NewTeam(b.threads)
	defer team.Close()
	if b.eng == nil {
		eng, notice, err := bestEngine(team)
		if err != nil {
			ready <- fmt.Errorf("cpu: %w", err)
			return
		}
		b.eng, b.notice = eng, notice
	}
	if b.bf16 {
		if err := b.eng.BF16(); err != nil {
			ready <- errors.Join(fmt.Errorf("cpu: %w: %w", ErrNoBF16, err), b.eng.Close())
			return
		}
	}
	b.jobs = threads.NewJobs(team, grain)
	ready <- nil
	for f := range b.calls {
		f()
	}
	b.err = b.eng.Close()
}

// do runs f on the backend's thread.
func (b *Backend) do(f func()) {
	done := make(chan struct{})
	b.calls <- func() { defer close(done); f() }
	<-done
}

// Name is, for example, "cpu (oneDNN 2.6.3, bf16, 2 threads)".
func (b *Backend) Name() string {
	threads := fmt.Sprintf("%d threads", b.threads)
	if b.threads == 1 {
		threads = "1 thread"
	}
	if b.bf16 {
		threads = "bf16, " + threads
	}
	return fmt.Sprintf("cpu (%s, %s)", b.eng.Name(), threads)
}

// Notice says why New took another engine than the one that this program was
// built for, in a sentence for people; "" if it did not.
func (b *Backend) Notice() string { return b.notice }

// Connect is host: programs reduce in host memory.
func (b *Backend) Connect(_ context.Context, host collective.Comm) (collective.Comm, error) {
	return host, nil
}

// NewVars returns an empty set of variables.
func (b *Backend) NewVars() exec.Vars { return &exec.HostVars{} }

// Close ends the backend's thread and closes its engine.
func (b *Backend) Close() error {
	b.close.Do(func() { close(b.calls); <-b.done })
	return b.err
}
