// Package nccl connects ranks that have a GPU each, by NVIDIA's NCCL.
//
// A [Comm] is a collective.Comm whose vectors lie in device memory. It stands on
// two legs: NCCL moves the data, and a group of package host, made for it alone,
// does everything else: ranks agree on each collective before NCCL is asked
// (NCCL compares nothing, and a difference hangs), tickets, order, aborts and
// deaths are its. The same vectors may be reduced in the order of a stream
// ([Comm.Enqueue]), inside a capture, too; then the agreement is made once
// before ([Comm.Agree]).
//
// NCCL is loaded when New is called, 2.19 or newer; nothing of it takes part in
// the build.
//
// Invariants:
//   - All ranks get the same bits. On one set of GPUs a sum has the same bits in
//     every run, too, as long as Options.NVLS is off. With Options.FixedOrder
//     sums have the bits of package host, whatever the GPUs are connected by.
//   - Vectors of one collective lie in memory from Alloc at the same offset on all
//     ranks, or NCCL sees other memory on all of them: Start copies where they
//     differ, Agree refuses.
//   - One call of NCCL's at a time is made on a communicator, and none after the
//     abort that ends it.
//   - A failure of either group, of NCCL, or of the device is the failure of all
//     of them, on every rank.
//
// Concurrency: see collective.Comm. Enqueue and Agree belong to the
// goroutine that calls Start; Await may be called beside it, by one goroutine.
//
// A collective that is captured holds the communicator: graphs are closed before
// Close, and, after a failure, soon: NCCL's abort waits for them.
package nccl

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// Group is the group of the hosts' ranks that NCCL is controlled by. That of
// package host is one.
type Group interface {
	collective.Comm
	// Over makes the group of a Comm. See package host.
	Over(ctx context.Context, d host.Device, limit time.Duration) (*host.Comm, error)
	// NotCome says who has not come to what the group waits for.
	NotCome(req collective.Request, limit time.Duration) error
}

// Options say how a Comm works.
type Options struct {
	// FixedOrder sums floating-point numbers in the order of package host, so that
	// the bits depend on nothing but the number of ranks: every rank gets a slice
	// from all others, sums it, and sends the result to all. It is slower.
	FixedOrder bool
	// NVLS lets NCCL sum in the switches of NVLink, where it can: faster, and other
	// bits in every call. Without it NCCL_NVLS_ENABLE is set to 0, unless it is set.
	NVLS bool
	// InitTimeout bounds New. Zero means two minutes.
	InitTimeout time.Duration
	// Timeout bounds each collective: the wait for a late rank, and that for NCCL.
	// Zero means ten minutes.
	Timeout time.Duration
	// Logger gets warnings. Nil discards them.
	Logger *slog.Logger

	muster time.Duration // for tests, in place of the constant
}

// Comm is one rank's end of a group of GPUs. It implements collective.Comm.
type Comm struct {
	*host.Comm // order, agreement, tickets, failure
	dev        *cuda.Device
	options    Options
	nvls       bool // may be used on some rank
	nccl       *communicator
	memory     *memory
	mover      *mover
	progress   *progress

	stream   *cuda.Stream // of Start
	over     *cuda.Event
	started  scratch // of Start
	enqueued scratch // of Enqueue

	looking  sync.Mutex
	leaving  bool          // nobody looks any more
	closing  chan struct{} // closed when the watch is to end
	watched  chan struct{} // closed when it has
	abortErr error         // of NCCL's abort, when watched is closed
	patience time.Duration
	once     sync.Once
	closeErr error
}

var _ collective.Comm = (*Comm)(nil)

// New connects the ranks of g, each with its device. All ranks call it, between
// the same two collectives of g, which is used for it. An error that wraps
// ErrMissing, ErrShared, ErrVersion or ErrModels is the same on all ranks, and
// leaves g as it was; after any other, g has failed too, or is of no use. g is
// the caller's, who closes it after the Comm; so is dev.
func New(ctx context.Context, g collective.Comm, dev *cuda.Device, o Options) (*Comm, error) {
	group, ok := g.(Group)
	if !ok {
		return nil, fmt.Errorf("nccl: the ranks are connected by a %T, expected a group of package host", g)
	}
	o.InitTimeout, o.Timeout = cmp.Or(o.InitTimeout, 2*time.Minute), cmp.Or(o.Timeout, 10*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.muster = cmp.Or(o.muster, muster)
	base, began := ctx, time.Now()
	ctx, stop := within(base, group, o.InitTimeout, "the start of NCCL")
	defer stop()
	api, version, err := load()
	mine := newCard(dev.Info(), version, err)
	mine.NVLS = nvlsAllowed(o.NVLS)
	nvls, err := compareCards(ctx, group, mine)
	if err != nil {
		return nil, err
	}
	if !o.NVLS {
		err = quietNVLS()
	}
	c := &Comm{dev: dev, options: o, nvls: nvls, patience: patience, closing: make(chan struct{}), watched: make(chan struct{})}
	c.nccl = &communicator{api: api, version: version, dev: dev, limit: o.InitTimeout}
	c.memory = &memory{nccl: c.nccl, dev: dev, log: o.Logger}
	c.mover = &mover{nccl: c.nccl, dev: dev, memory: c.memory, fixed: o.FixedOrder, rank: g.Rank(), size: g.Size()}
	c.progress = &progress{numbers: map[collective.Request]uint32{}, last: map[uint32]bool{}}
	over, overErr := group.Over(ctx, device{c}, o.Timeout)
	if overErr != nil {
		return nil, fmt.Errorf("nccl: the group that controls it: %w", overErr)
	}
	c.Comm, c.nccl.failed = over, over.Failed()
	go c.watch()
	if err := c.connect(ctx, base, began, group, err); err != nil {
		c.Comm.Abort(err)
		return nil, errors.Join(err, c.Close())
	}
	c.nccl.limit = o.Timeout
	return c, nil
}

// muster is how soon after the end of InitTimeout the others must report that they have
// joined, or not.
const muster = 5 * time.Second

// connect makes what this rank needs, joins NCCL before ctx ends, and hears from
// all ranks that they have: each may take as long to join as is left since New began.
// err is what went wrong so far.
func (c *Comm) connect(ctx, base context.Context, began time.Time, g Group, err error) error {
	id, idErr := c.shareID(ctx, g)
	if idErr != nil {
		return idErr
	}
	if err == nil {
		err = c.prepare()
	}
	if err := c.report(ctx, g, err); err != nil {
		return err
	}
	joined := c.join(ctx, id)
	if joined != nil && !errors.Is(joined, errSlow) {
		return startOn(c.Rank(), joined) // the others' ends with the group
	}
	left := max(0, c.options.InitTimeout-time.Since(began)).Round(time.Second)
	ctx, stop := within(base, g, left+c.options.muster, "how the start of NCCL went")
	defer stop()
	return c.report(ctx, g, joined)
}

// shareID is the id that rank 0 makes.
func (c *Comm) shareID(ctx context.Context, g Group) (id [idBytes]byte, err error) {
	var text string
	if g.Rank() == 0 {
		err = c.dev.Attach(func() error {
			var code int
			if id, code = c.nccl.api.uniqueID(); code != success {
				return &Error{Call: "ncclGetUniqueId", Code: code, Text: c.nccl.api.text(code)}
			}
			return nil
		})
		if text = hex.EncodeToString(id[:]); err != nil {
			text = "!" + err.Error()
		}
	}
	all, gatherErr := collective.GatherBytes(ctx, g, "NCCL's id", []byte(text))
	switch {
	case gatherErr != nil:
		return id, gatherErr
	case err != nil:
		return id, startOn(0, err)
	case len(all[0]) > 0 && all[0][0] == '!':
		return id, startOn(0, errors.New(string(all[0][1:])))
	}
	b, err := hex.DecodeString(string(all[0]))
	copy(id[:], b)
	return id, err
}

// prepare makes what is on this rank's device.
func (c *Comm) prepare() (err error) {
	if c.stream, err = c.dev.NewStream("collectives", -1); err != nil {
		return err
	}
	if c.over, err = c.dev.NewEvent(false); err != nil {
		return err
	}
	if c.progress.word, err = c.dev.AllocPinned(progressBytes); err != nil {
		return err
	}
	clear(c.progress.word.Bytes())
	c.mover.kernels, err = loadKernels(c.dev)
	return err
}

var errSlow = errors.New("NCCL has not connected all ranks")

// startOn is what went wrong on a rank.
func startOn(rank int, err error) error {
	if errors.Is(err, collective.ErrAborted) {
		return err // which says who and why
	}
	return fmt.Errorf("nccl: the start on rank %d: %w", rank, err)
}

// join joins NCCL, until it fails or the group does.
func (c *Comm) join(ctx context.Context, id [idBytes]byte) error {
	quit := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { close(quit) })
	defer stop()
	err := c.nccl.init(c.Size(), id, c.Rank(), quit)
	switch {
	case err != nil && c.Failure() != nil: // which aborted it
		return c.Failure()
	case err != nil && (ctx.Err() != nil || errors.Is(err, errUnsettled)):
		return fmt.Errorf("%w within %v", errSlow, c.options.InitTimeout)
	}
	return err
}

// report tells all ranks how this one fares, and is the error of the first that
// fares ill.
func (c *Comm) report(ctx context.Context, g Group, err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	all, gatherErr := collective.GatherBytes(ctx, g, "how the start of NCCL went", []byte(text))
	if err != nil {
		return startOn(c.Rank(), err)
	}
	if gatherErr != nil {
		return gatherErr
	}
	for r, t := range all {
		if len(t) > 0 {
			return fmt.Errorf("nccl: the start on rank %d: %s", r, t)
		}
	}
	return nil
}
