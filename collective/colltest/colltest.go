// Package colltest is the conformance suite of package collective. Every
// implementation of collective.Comm passes it:
//
//	func TestMain(m *testing.M) {
//		colltest.Main(open) // only if ranks can be processes
//		os.Exit(m.Run())
//	}
//
//	func TestConformance(t *testing.T) {
//		colltest.Run(t, colltest.Factory{New: newGroup, Open: open})
//	}
//
// What is right is computed element by element in float64, by the slowest
// code that can be read. Inputs are small integers unless rounding is what is
// tested, so results are compared exactly.
//
// The suite makes its own groups and closes them; it has no state.
package colltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
)

// Factory makes the groups that are tested.
type Factory struct {
	// New makes a group of n ranks in this process. The suite closes them.
	New func(t testing.TB, n int) []collective.Comm

	// Open joins, as one of size processes, the group that meets in dir, an
	// empty directory that all see. Nil leaves out the tests in which
	// processes die. See Main.
	Open func(ctx context.Context, rank, size int, dir string) (collective.Comm, error)

	// Memory makes a buffer of n bytes in the memory that c works on. Nil
	// means ordinary memory.
	Memory func(c collective.Comm, n int) (Buffer, error)

	// Wrap makes a Buffer of memory from c's Alloc. Nil means that the bytes
	// can be read and written as they are.
	Wrap func(c collective.Comm, mem collective.Vec) Buffer

	// Brief leaves out what only repeats with other sizes, as -short and -race do:
	// for an implementation's second and third configuration.
	Brief bool

	// Also are group sizes that Brief does not leave out where what depends on them is seen
	// quickly.
	Also []int

	// AnyOrder says that sums are added in an order of the implementation's own, which
	// may differ between AllReduce and ReduceScatter, and with a vector's length.
	AnyOrder bool

	// MaxRanks is the largest group New can make. Zero means 8.
	MaxRanks int
}

// limit bounds every wait of the suite: what takes longer hangs.
const limit = 30 * time.Second

// Run tests the implementation behind f.
func Run(t *testing.T, f Factory) {
	f = f.filled()
	t.Run("values", f.values)
	t.Run("large", f.large)
	t.Run("rounding", f.rounding)
	t.Run("determinism", f.determinism)
	if !f.AnyOrder { // else a sum has other bits each time
		t.Run("scattered", f.scattered)
	}
	t.Run("program", f.program)
	t.Run("reuse", f.reuse)
	t.Run("in_flight", f.inFlight)
	t.Run("tickets", f.tickets)
	t.Run("alloc", f.alloc)
	t.Run("mismatch", f.mismatch)
	t.Run("mismatch_alloc", f.mismatchAlloc)
	t.Run("invalid", f.invalid)
	t.Run("abort", f.abort)
	t.Run("abort_idle", f.abortIdle)
	t.Run("cancel", f.cancel)
	t.Run("close", f.closing)
	t.Run("close_pending", f.closePending)
	t.Run("close_peer", f.closePeer)
	t.Run("death", f.death)
}

// filled is f with what nil and zero mean.
func (f Factory) filled() Factory {
	if f.MaxRanks == 0 {
		f.MaxRanks = 8
	}
	if f.Memory == nil {
		f.Memory = func(_ collective.Comm, n int) (Buffer, error) { return hostBuffer(n), nil }
	}
	if f.Wrap == nil {
		f.Wrap = func(_ collective.Comm, mem collective.Vec) Buffer { return plain{mem.Bytes()} }
	}
	return f
}

// group makes a group that is closed when the test ends.
func (f Factory) group(t testing.TB, n int) []collective.Comm {
	t.Helper()
	comms := f.New(t, n)
	if len(comms) != n {
		t.Fatalf("factory made %d ranks, want %d", len(comms), n)
	}
	for r, c := range comms {
		if c.Rank() != r || c.Size() != n {
			t.Fatalf("rank %d of %d calls itself rank %d of %d", r, n, c.Rank(), c.Size())
		}
	}
	t.Cleanup(func() { each(comms, func(c collective.Comm) error { return c.Close() }).ok(t) })
	return comms
}

func (f Factory) brief() bool { return f.Brief || testing.Short() || raceEnabled }

// sizes are the group sizes to test: all, or some if brief, and up to three in short tests
// under the race detector, where eight ranks take as long as all others.
func (f Factory) sizes() []int {
	var sizes []int
	for n := 1; n <= f.MaxRanks; n++ {
		if f.brief() && n > 3 && (n != 8 || raceEnabled && testing.Short()) {
			continue
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// quickSizes are the group sizes to test where one does not take long.
func (f Factory) quickSizes() []int {
	sizes := append(f.sizes(), f.Also...)
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// pair is the smaller of n and what the factory can make; tests of what
// happens between ranks need two.
func (f Factory) pair(t *testing.T, n int) int {
	if f.MaxRanks < 2 {
		t.Skip("the factory makes no groups of two ranks")
	}
	return min(n, f.MaxRanks)
}

// results are what each rank returned.
type results []error

// each runs do for all ranks at once.
func each(comms []collective.Comm, do func(c collective.Comm) error) results {
	errs := make(results, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() { errs[r] = do(c) })
	}
	wg.Wait()
	return errs
}

func (errs results) ok(t testing.TB) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// are demands that every rank failed with a *collective.Error, wrapping one of targets.
func (errs results) are(t testing.TB, targets ...error) {
	t.Helper()
	for r, err := range errs {
		if _, ok := errors.AsType[*collective.Error](err); !ok || !isAny(err, targets) {
			t.Errorf("rank %d: got %T %v, want a *collective.Error of one of %v", r, err, err, targets)
		}
	}
}

// report demands that each rank's error says that it is that rank's.
func (errs results) report(t testing.TB) {
	t.Helper()
	for r, err := range errs {
		if e, ok := errors.AsType[*collective.Error](err); !ok || e.Rank != r {
			t.Errorf("rank %d: got %T %v, want a *collective.Error that reports rank %d", r, err, err, r)
		}
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// do runs one collective within limit. Past it the error says that it hung,
// and wraps nothing.
func do(c collective.Comm, req collective.Request) error {
	return wait(c.Start(req))
}

func wait(p collective.Pending) error {
	done := make(chan error, 1)
	go func() { done <- p.Wait(context.Background()) }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("colltest: no end after %v", limit)
	}
}

// sum is an all-reduce of n float32 ones in ordinary memory.
func (f Factory) sum(c collective.Comm, n int) (collective.Request, error) {
	b, err := f.Memory(c, 4*n)
	if err != nil {
		return collective.Request{}, err
	}
	b.Write(make([]byte, 4*n))
	return collective.Request{
		Kind: collective.AllReduce, Op: collective.Sum, Label: "ones",
		Vec: collective.Vec{Type: collective.F32, Len: n, Ptr: b.Ptr()},
	}, nil
}
