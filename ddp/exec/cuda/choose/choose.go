// Package choose decides which candidate of which library does each convolution
// and matrix product of a program, the same on all ranks and after a resume.
//
//	problem ─ libraries ─ candidates ─ timed on rank 0 ─ choice ─┬─ file
//	                                                             └─ all ranks ─ kernel
//
// The candidates of a problem are what the libraries offer for it, with casts around
// them where they want other element types than the problem has; convolutions that
// are matrix products (see linalg.Conv.Product) are asked for as those, too. The
// caller's kernel for images of few channels is one of them where there is one, its plain
// kernel where a problem is small, and that is all there is where
// the libraries offer nothing. Rank 0 runs each on random numbers in device memory, a
// few times, between events; its choices are broadcast and kept in a file, which lies
// in the run's directory. So a resumed run has the same bits. A file of another device
// or of other versions of the libraries is not used: its choices may not exist there,
// so all is chosen anew, and said.
//
// With Options.Untimed nothing is timed and no file is used: the first candidate in the
// libraries' own order that runs is taken, which depends on problem, device and versions
// alone.
// That may be slower, and makes runs alike that share nothing, in worlds of any size.
//
// # Concurrency
//
// A Chooser is used by one goroutine at a time. Choose is collective: all ranks
// call it with equal problems, in the same order, once Compare has found them alike.
package choose

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// Cast converts n elements on a stream.
type Cast func(s *cuda.Stream, dst cuda.Ptr, to graph.DType, src cuda.Ptr, from graph.DType, n int64) error

// Move makes columns of an image, or an image of columns, on a stream.
type Move func(s *cuda.Stream, c linalg.Columns, dst, src cuda.Ptr) error

// Options are what a Chooser works with.
type Options struct {
	Device *cuda.Device
	// Stream is what candidates are timed on. Nothing else runs meanwhile.
	Stream *cuda.Stream
	// Alloc and Free take memory of the device to time candidates in, for what in words,
	// and give it back. nil: the Device's own.
	Alloc func(bytes int64, what string) (cuda.Ptr, error)
	Free  func(cuda.Ptr) error
	// Convolutions and Products are the libraries; the Chooser does not close them.
	// nil: there is none.
	Convolutions, Products linalg.Library
	// Plain makes a kernel of the caller's own, for a problem of any types. Its Saved
	// is not used. nil: there is none.
	Plain func(linalg.Problem) (linalg.Candidate, error)
	// Few makes a kernel of the caller's own that is timed beside all others, for a
	// convolution of images of few channels: nil where it has none. Its Saved is not used.
	// nil: there is none.
	Few func(linalg.Problem) (linalg.Candidate, error)
	// Cast is for problems whose types no library takes. nil: those have no
	// candidates.
	Cast Cast
	// Move is for convolutions that are products of columns (see linalg.Conv.Columns).
	// nil: none is asked for as that.
	Move Move
	// Untimed takes the first candidate in the libraries' order that runs.
	Untimed bool
	// Rank is this rank, and Share gives all ranks what rank 0 passes; nil in a
	// world of one.
	Rank  int
	Share func([]byte) ([]byte, error)
	// File keeps the choices of this run, and Cache those of all runs of this user on
	// machines like this one: what File has not is looked up there. Rank 0 reads and
	// writes them. The cache gets no choice of a problem of which a candidate failed as it
	// ran: that may have been the machine's fault. "": none.
	File, Cache string
	// Say tells people a sentence. nil: nobody listens.
	Say func(string)
	// Tick is called before each run of a candidate, so that who waits sees that it goes on.
	// nil: nobody does.
	Tick func()
}

// Kernel is the candidate that does a problem. The Chooser closes it.
type Kernel interface {
	// String is the kernel for people: "cudnn engine 38".
	fmt.Stringer
	// Workspace is the number of bytes of device memory that Enqueue needs.
	Workspace() int64
	// Enqueue puts one run onto the stream (see linalg.Candidate).
	Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error
}

// Chooser chooses for one device.
type Chooser struct {
	o       Options
	machine machine
	kernels map[string]*adapted // by problem
	// On rank 0: what File keeps, and what Cache does, by problem.
	kept, cached map[string]choice
}

// New reads the files, on rank 0.
func New(o Options) *Chooser {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Tick == nil {
		o.Tick = func() {}
	}
	if o.Alloc == nil {
		o.Alloc = func(bytes int64, _ string) (cuda.Ptr, error) { return o.Device.Alloc(bytes) }
		o.Free = o.Device.Free
	}
	for _, l := range []linalg.Library{o.Convolutions, o.Products} {
		if l, ok := l.(interface{ Listen(func(string)) }); ok {
			l.Listen(o.Say)
		}
	}
	c := &Chooser{o: o, machine: machineOf(o), kernels: map[string]*adapted{}, kept: map[string]choice{}, cached: map[string]choice{}}
	if o.Rank == 0 && !o.Untimed {
		maps.Copy(c.kept, c.read(o.File, true))
		maps.Copy(c.cached, c.read(o.Cache, false))
	}
	return c
}

// Choose returns the kernel of each problem. Equal problems share one.
func (c *Chooser) Choose(problems []linalg.Problem) ([]Kernel, error) {
	for _, p := range problems {
		if err := p.Check(); err != nil {
			return nil, err
		}
	}
	fresh := c.fresh(problems)
	told, err := c.agree(fresh)
	if err != nil {
		return nil, err
	}
	for _, p := range fresh {
		if c.kernels[p.String()] != nil { // rank 0's, which was tried
			continue
		}
		ch, ok := told[p.String()]
		if !ok {
			return nil, fmt.Errorf("rank 0 did not choose a kernel for %v: its program is another", p)
		}
		k, err := c.restore(p, ch)
		if err != nil {
			return nil, fmt.Errorf("what rank 0 chose for %v: %w", p, err)
		}
		c.kernels[p.String()] = k
	}
	list := make([]Kernel, len(problems))
	for i, p := range problems {
		list[i] = c.kernels[p.String()]
	}
	return list, nil
}

// fresh are the problems that have no kernel yet, each once.
func (c *Chooser) fresh(problems []linalg.Problem) (list []linalg.Problem) {
	for _, p := range problems {
		if c.kernels[p.String()] == nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// message is what rank 0 tells the others.
type message struct {
	Choices map[string]choice
	Error   string // why rank 0 has none
}

// agree makes rank 0's choices for problems everybody's.
func (c *Chooser) agree(problems []linalg.Problem) (map[string]choice, error) {
	var m message
	var failed error
	if c.o.Rank == 0 {
		if m.Choices, failed = c.decide(problems); failed != nil {
			m.Error = failed.Error()
		}
	}
	if c.o.Share == nil {
		return m.Choices, failed
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if text, err = c.o.Share(text); err != nil || c.o.Rank == 0 {
		return m.Choices, cmp.Or(failed, err)
	}
	m = message{}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("rank 0's choices of kernels: %w", err)
	}
	if m.Error != "" {
		return nil, fmt.Errorf("rank 0 has no kernels: %s", m.Error)
	}
	return m.Choices, nil
}

// Close closes the kernels. No run of one is queued, and no captured graph holds any.
func (c *Chooser) Close() error {
	var errs []error
	for _, k := range c.kernels {
		errs = append(errs, k.Close())
	}
	c.kernels = map[string]*adapted{}
	return cmp.Or(errs...)
}
