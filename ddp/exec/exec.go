// Package exec turns graphs into programs and runs them.
//
// A Backend compiles a graph once, against the variables of a model, into a
// Program that runs many times. Backends: ref (plain Go loops, one node at a
// time, the truth), cpu (oneDNN or plain Go, all cores) and cuda (an NVIDIA
// GPU). All are held to ref by the suite in exectest.
//
// The interface fits an asynchronous device. A program's inputs and outputs
// are fixed host buffers: the caller fills the inputs, Launch queues one run
// and returns, Wait returns when the oldest run is complete and its outputs are
// readable. Nothing is allocated per run. How many runs may be queued is the
// program's Depth; with 1, as on the cpu, Launch and Wait take turns.
//
// # Collectives
//
// Collectives (AllReduce, ReduceScatter, AllGather) run on the Comm given at compile
// time, started as soon as their inputs exist and waited for where their results are
// first needed. Those that are for another number of ranks are an error of Compile
// (CheckRanks). The order in which a program starts them is a function of the graph alone, so
// ranks that compile equal graphs agree. That Comm is what Backend.Connect makes
// of the one that connects the hosts' ranks: the cpu reduces over the same, a
// GPU over NCCL.
//
// # Concurrency
//
// A Backend and its Vars may be used from several goroutines. Programs that
// share Vars must not run at the same time. One goroutine at a time uses a
// Program.
package exec

import (
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Backend compiles graphs for one device.
type Backend interface {
	// Name says what it is, for people: "cpu (oneDNN 2.6.3, 2 threads)".
	Name() string
	// NewVars returns an empty set of variables on this device.
	NewVars() Vars
	// Connect is the Comm over which this backend's programs reduce, for the
	// ranks that host connects: host itself where they compute in host memory.
	// All ranks call it, in the same order relative to host's collectives. A
	// backend whose programs queue runs (see Program.Depth) gives one of its own,
	// so that host's collectives may be used meanwhile. An abort of either is one
	// of both. host, which the caller keeps and closes after the backend, is nil in
	// a world of one, and so then is the result. Close of the backend releases what
	// Connect made.
	Connect(ctx context.Context, host collective.Comm) (collective.Comm, error)
	// Compile makes a program of the live part of g. Every Var leaf must be in
	// o.Vars, with the leaf's type.
	Compile(g *graph.Graph, o Options) (Program, error)
	// Close releases the device. Programs must be closed before.
	Close() error
}

// Describe is a backend's name, and what it has to say to people about the
// choice of it, if anything: "cpu (plain Go, 2 threads) (libdnnl.so.2 was not
// found: …)".
func Describe(b Backend) string {
	if n, ok := b.(interface{ Notice() string }); ok && n.Notice() != "" {
		return b.Name() + " (" + n.Notice() + ")"
	}
	return b.Name()
}

// Options are the surroundings of a program.
type Options struct {
	// Name is the program's name in errors and dumps: "step", "energy".
	Name string
	// Vars holds the variables. They must come from the same backend.
	Vars Vars
	// Comm carries collectives: the backend's Connect made it. nil means a world of
	// one.
	Comm collective.Comm
	// Profile makes the program keep the time of each op (see Stats).
	Profile bool
	// Remat trades time for memory: what costs little to compute is computed
	// again instead of being kept, where that lowers the peak. Results have the
	// same bits. A backend that keeps everything anyway ignores it.
	Remat bool
	// Deterministic computes every value in a way that does not depend on what
	// else is in the graph: the bits of a virtual shard (see ddp.Virtualise) are
	// the same however many of them share a program. It is slower. On the cpu the
	// number of threads matters too: give each rank one.
	Deterministic bool
	// MaxBytes is how much memory the program's intermediate values may take; 0 is
	// any. A program that needs more is a *MemoryError, before anything is
	// allocated. A backend that plans no memory ignores it.
	MaxBytes int64
	// Trace is asked before each run for a function that is told what the run
	// does, in the order in which it ends and before Wait returns, by one
	// goroutine at a time. Where either is nil, nothing is told and no time is
	// lost.
	Trace func() func(Event)
}

// MemoryError is a program that needs more memory than it may take; Need may be less
// than what it would take in the end.
type MemoryError struct{ Need, Max int64 } // bytes

func (e *MemoryError) Error() string {
	return fmt.Sprintf("its intermediate values take at least %s, and it may take %s", binary(e.Need), binary(e.Max))
}

// FullError is a device's memory that has no room left. It says who has it, and what to
// do.
type FullError struct {
	Of          string      // whose memory: "GPU 0 (NVIDIA H200)"
	What        string      // for what: "intermediate values of program \"step\""
	Asked       int64       // bytes; 0 where only the driver knows
	Free, Total int64       // of the device, whoever uses it
	Largest     []MemoryUse // by this rank, the largest first
	Others      int64       // bytes that are neither free nor any use that this rank knows of
	Help        string      // what to do, for people; "" where nobody has said
	Err         error       // the call that failed
}

// MemoryUse is what memory is used for.
type MemoryUse struct {
	What  string
	Bytes int64
}

func (e *FullError) Error() string {
	asked := "some was"
	if e.Asked > 0 {
		asked = binary(e.Asked) + " were"
	}
	s := fmt.Sprintf("%s is out of memory: %s asked for %s, and %s of %s are free", e.Of, asked, e.What, binary(e.Free), binary(e.Total))
	for i, u := range e.Largest {
		sep := ", "
		if i == 0 {
			sep = "; this rank holds most for "
		}
		s += fmt.Sprintf("%s%s (%s)", sep, u.What, binary(u.Bytes))
	}
	if len(e.Largest) == 0 {
		s += "; this rank holds nothing yet"
	}
	if e.Others > 0 {
		s += fmt.Sprintf("; other processes (nvidia-smi lists them), the driver, libraries and captured runs hold %s", binary(e.Others))
	}
	if e.Help != "" {
		s += ": " + e.Help
	}
	return s
}

func (e *FullError) Unwrap() error { return e.Err }

// binary is so many bytes for people, with digits enough to compare what hardly does not
// fit with the room there is.
func binary(n int64) string {
	if n < 1<<10 {
		return humanize.IBytes(uint64(n)) // whole ones
	}
	return humanize.IBytesN(uint64(n), 4)
}

// Vars is a set of named variables on a device: parameters, optimiser moments,
// running statistics. Programs read and assign them.
type Vars interface {
	// Names are the names, in the order of creation.
	Names() []string
	// Type is the type of a variable, and whether there is one.
	Type(name string) (graph.Type, bool)
	// Set copies t into the variable, which is created if there is none. An
	// existing variable keeps its type: another is an error.
	Set(name string, t *Tensor) error
	// Get copies the variable to the host.
	Get(name string) (*Tensor, error)
	// View calls f with the variable in host memory, its own or a copy, which f
	// must neither change nor keep. f must not use the Vars.
	View(name string, f func(*Tensor)) error
}

// Program is a compiled graph.
type Program interface {
	// Depth is how many runs may be queued, at least 1. Runs are done one after
	// the other, in order.
	Depth() int
	// Input is the host buffer of an input, nil if the live part of the graph
	// has no input of that name. It keeps what is in it from run to run. It must
	// not be touched between Launch and Wait; above Depth 1 it may be filled for
	// the next run as soon as Launch has returned.
	Input(name string) *Tensor
	// Output is the host buffer of a named output, nil if there is none. It is
	// valid from Wait to the next Launch; above Depth 1, to the next Wait.
	Output(name string) *Tensor
	// Launch queues one run and returns, as soon as the inputs are its own. It is
	// an error where Depth runs are queued already.
	Launch(ctx context.Context) error
	// Wait blocks until the oldest run is complete: outputs readable; variables
	// assigned, if no other run is queued. If it returns an error, which says which
	// op and where, variables are as before the run or undefined, and the runs
	// queued behind it are over too: nobody waits for them.
	Wait(ctx context.Context) error
	// Stats are sizes known since compilation and times of the runs so far. It is
	// called between a Wait and the next Launch; above Depth 1 at any time.
	Stats() Stats
	// Dump writes the program as text: order, buffers, fused groups. Equal
	// graphs give equal text.
	Dump(w io.Writer) error
	// Close ends the runs that are queued, and releases the program's memory, but for
	// buckets of collectives, which the Comm has until its own Close. Launch is an error
	// afterwards.
	Close() error
}

// Run is Launch and Wait, where no run is queued.
func Run(ctx context.Context, p Program) error {
	if err := p.Launch(ctx); err != nil {
		return err
	}
	return p.Wait(ctx)
}
