// Package cuda runs graphs on an NVIDIA GPU. It computes nothing itself: it says
// which kernel does a step, where its operands lie, on which stream it runs and what
// it waits for. Fused groups, moves and whatever no library does are kernels that
// package kernel writes and the driver's compiler translates; convolutions and
// products are those of cuDNN and cublasLt, as package choose decides.
//
// # Memory
//
// All addresses of a program are fixed when it is compiled:
//
//	arena      ┌ value ┬ value ──┬ value ┬ scratch of a step ┐   shared by lifetime
//	bucket     ┌ gradient ┬ gradient ┬ …                         from the Comm, reduced in place
//	inputs     ┌ input ┬ input ┐   outputs ┌ output ┬ faults ┐   one copy each way
//	slot 0, 1  pinned: inputs, outputs; device: inputs that wait one for each queued run
//	variables                                                    of their own
//
// # Order
//
// Steps are spread over streams (see schedule), collectives have one of their own, and
// inputs come by a third. Events keep what plan.Deps asks for. The first run of a
// program does one step after the other, since loading a kernel may wait for the
// device; where cuDNN is used the second goes over all streams, since that keeps memory
// for each; the next is captured, all streams into one graph, and replayed from then on,
// on all ranks of a program that reduces or on none.
// A run that is traced or timed is done step by step again. All give the same bits.
//
// Where the ranks' Comm reduces through host memory nothing is captured: a goroutine
// of the backend queues the steps of each run, and waits in the middle of it.
//
// # Concurrency
//
// A Backend may be used from several goroutines; its programs take turns to queue
// their runs, and Compile takes its turn, too, to have kernels chosen, which are timed on
// a stream of the runs', and for what it asks of the other ranks. All ranks Launch and
// Compile programs that reduce in the same order. See package exec for Programs and Vars.
package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/linalg"
)

// Precision is what convolutions and products multiply float32 in. Weights, sums,
// statistics, losses and what travels are float32 always.
type Precision uint8

const (
	F32  Precision = iota // with all its digits
	TF32                  // with 10 bits behind the point
	BF16                  // and images between steps lie in memory as bfloat16, but for those of deterministic programs
)

func (p Precision) String() string { return [...]string{"f32", "tf32", "bf16"}[p] }

// math is how a library may multiply.
func (p Precision) math() linalg.Math {
	return [...]linalg.Math{F32: linalg.Full, TF32: linalg.TF32, BF16: linalg.BF16}[p]
}

// Graphs says whether runs are captured and replayed.
type Graphs uint8

const (
	GraphsAuto Graphs = iota // where all ranks can; if a capture fails, it is said and done without
	GraphsOn                 // or it is an error
	GraphsOff
)

// Transport is what programs reduce over.
type Transport uint8

const (
	TransportAuto   Transport = iota // NCCL where each rank has a GPU of its own, else staged
	TransportNCCL                    // or it is an error
	TransportStaged                  // through pinned host memory
)

// Config is how a backend is made.
type Config struct {
	Ordinal   int // of the device, among those that are visible
	Precision Precision
	Graphs    Graphs
	Transport Transport
	// Deterministic makes the ranks' sums in an order that depends on nothing but the
	// number of ranks.
	Deterministic bool
	// Timeout is how long a rank may be late for a collective; 0 is ten minutes.
	Timeout time.Duration
	// Lanes is the number of streams that compute; 0 is 8.
	Lanes int
	// Body makes captured runs of programs without collectives the body of one node, so that
	// the host launches that alone; where the driver refuses, it is said and done without.
	// Those with collectives are launched node by node.
	Body bool
	// Plain leaves cuDNN and cublasLt out: convolutions and products are done by
	// kernels that are made here, for any size.
	Plain bool
	// Choices is the file that keeps which of the libraries' kernels were chosen, so
	// that a run that goes on there has the same bits; "" keeps none.
	Choices string
	// Cache is the file that keeps them for all runs on machines like this one; ""
	// keeps none.
	Cache string
	// Smaller is what to do where the device's memory is full, for people: which flags make
	// programs smaller. It ends each sentence about that. "" says nothing.
	Smaller string
	// Say is told what people should know, a sentence each; nil tells nobody.
	Say func(string)
}

// defaultLanes is enough for what is side by side in a step: see DESIGN.md.
const defaultLanes = 8

// ErrNoBF16 is in the error of New where Config.Precision asks for what the GPU has
// not.
var ErrNoBF16 = errors.New("no bf16")

// Backend implements exec.Backend.
type Backend struct {
	c     Config
	dev   *driver.Device
	info  driver.Info
	lanes []*driver.Stream // that compute; runs begin and end on the first
	comm  *driver.Stream   // collectives
	copy  *driver.Stream   // to and from the host
	libs  *libraries

	calls chan func()
	done  chan struct{}
	once  sync.Once
	err   error // of closing

	patience time.Duration
	turns    atomic.Int64  // of what is done where runs are queued: another number after each step of it
	stuck    chan struct{} // closed once who queues them is in a call that does not return: the GPU hangs
	stick    func()        // closes it

	mu      sync.Mutex // guards the following
	vars    []*variables
	memory  map[driver.Ptr]holding
	modules map[string]*module
	moves   map[fmt.Stringer]*plainKernel // by castKey or linalg.Columns
	reduced []collective.Comm
	host    collective.Comm // what Connect was given, of package host

	transfer sync.Mutex // guards bounce
	bounce   *driver.Pinned
}

// New opens a device.
func New(c Config) (_ *Backend, err error) {
	if c.Lanes == 0 {
		c.Lanes = defaultLanes
	}
	if c.Say == nil {
		c.Say = func(string) {}
	}
	c.Say = oneByOne(c.Say)
	b := &Backend{c: c, patience: patience, memory: map[driver.Ptr]holding{}, modules: map[string]*module{}, moves: map[fmt.Stringer]*plainKernel{}, calls: make(chan func(), 16), done: make(chan struct{}), stuck: make(chan struct{})}
	b.stick = sync.OnceFunc(func() { close(b.stuck) })
	go b.serve()
	defer func() {
		if err != nil {
			err = errors.Join(b.full("", err), b.Close())
		}
	}()
	if b.dev, err = driver.OpenDevice(c.Ordinal); err != nil {
		return nil, err
	}
	b.dev.SetLogger(slog.New(notices{c.Say}))
	b.info = b.dev.Info()
	if c.Precision == BF16 && b.info.Major < 8 {
		return nil, fmt.Errorf("%w: %s has none, which GPUs of compute capability 8.0 or newer have, and it has %d.%d", ErrNoBF16, b.who(), b.info.Major, b.info.Minor)
	}
	for i := range c.Lanes {
		s, err := b.dev.NewStream(fmt.Sprintf("compute %d", i), 0)
		if err != nil {
			return nil, err
		}
		b.lanes = append(b.lanes, s)
	}
	if b.comm, err = b.dev.NewStream("collectives", -1); err != nil {
		return nil, err
	}
	if b.copy, err = b.dev.NewStream("copies", 0); err != nil {
		return nil, err
	}
	if b.bounce, err = b.dev.AllocPinned(bounceBytes); err != nil {
		return nil, err
	}
	if b.libs, err = b.openLibraries(); err != nil {
		return nil, err
	}
	return b, nil
}

// serve queues the runs of programs, one after the other, and does what must not be beside
// that. It alone uses the Comm that programs reduce over, but for Await, and the libraries.
func (b *Backend) serve() {
	defer close(b.done)
	for f := range b.calls {
		f()
		b.turns.Add(1)
	}
}

// ask is what f finds where runs are queued; nothing where the GPU hangs. Then f may be done
// later, or never: what it writes must not be read.
func ask[T any](b *Backend, f func() T) (found T, ok bool) {
	answer := make(chan T, 1)
	if b.hung() || !b.send(func() { answer <- f() }) {
		return found, false
	}
	select {
	case found = <-answer:
		return found, true
	case <-b.stuck:
		return found, false
	}
}

// send has f done where runs are queued. It is false where the GPU hangs.
func (b *Backend) send(f func()) bool {
	select {
	case b.calls <- f:
		return true
	case <-b.stuck:
		return false
	}
}

// inTurn is ask for what may fail: for what Compile shares with the runs of other programs,
// and for its collectives, whose order is the same on all ranks then.
func (b *Backend) inTurn(f func() error) error {
	err, ok := ask(b, f)
	if !ok {
		return b.hangs()
	}
	return err
}

// hung says whether the GPU hangs.
func (b *Backend) hung() bool {
	select {
	case <-b.stuck:
		return true
	default:
		return false
	}
}

// hangs is what comes of whatever is asked of a GPU that hangs.
func (b *Backend) hangs() error {
	return fmt.Errorf("%s hangs: what is on it is lost until the process ends", b.who())
}

// who is the device, for people: "GPU 0 (NVIDIA H200)".
func (b *Backend) who() string { return fmt.Sprintf("GPU %d (%s)", b.info.Ordinal, b.info.Name) }

// Name is, for example, "cuda (GPU 0, NVIDIA H200, bf16, cuDNN 9.19.0, cuBLASLt 13.0.1)".
func (b *Backend) Name() string {
	return fmt.Sprintf("cuda (GPU %d, %s, %s, %s)", b.info.Ordinal, b.info.Name, b.c.Precision, b.libs)
}

// Memory is the size of the device's memory and whose it is.
func (b *Backend) Memory() (bytes int64, of string, err error) {
	_, total, err := b.dev.MemInfo()
	return total, b.who(), err
}

// Close releases the device. Programs must be closed before; variables go with it. Of a GPU that
// hangs nothing is released.
func (b *Backend) Close() error {
	b.once.Do(func() {
		if b.hung() {
			b.err = b.hangs()
			return
		}
		close(b.calls)
		<-b.done
		b.err = b.release()
	})
	return b.err
}

func (b *Backend) release() error {
	var errs []error
	for _, c := range b.reduced {
		errs = append(errs, c.Close())
	}
	// Where NCCL has not ended, freeing would wait for its kernels, for ever if they hang:
	// what there is goes with the context or the process.
	if b.dev == nil || !b.dev.Kept() {
		errs = append(errs, b.freeAll())
	}
	if b.dev != nil {
		errs = append(errs, b.dev.Close())
	}
	return errors.Join(errs...)
}

// freeAll frees what is on the device.
func (b *Backend) freeAll() error {
	var errs []error
	for _, v := range b.vars {
		errs = append(errs, v.free())
	}
	if b.libs != nil {
		if err := b.libs.Close(); !b.dev.Lost() {
			errs = append(errs, err)
		}
	}
	for _, m := range b.modules {
		errs = append(errs, m.close())
	}
	if b.bounce != nil {
		errs = append(errs, b.bounce.Free())
	}
	for _, s := range append(b.lanes, b.comm, b.copy) {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

var _ exec.Backend = (*Backend)(nil)
