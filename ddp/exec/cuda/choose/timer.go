package choose

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// rounds is how often each candidate is timed; the median counts.
const rounds = 5

// caches is how many times the size of the GPU's cache is written before a run: some
// 100 us of work, beside which the host puts the run onto the stream. Else short runs
// would be timed as long as that takes, tens of microseconds, which a replayed graph does
// not. And operands come from memory, as most do in a step.
const caches = 8

// timer runs candidates on random numbers: zeros would be faster than what is computed
// later, as chips that compute them draw less power.
type timer struct {
	c          *Chooser
	from, to   *cuda.Event
	dst, work  buffer
	a, b       buffer
	cache      buffer          // larger than the GPU's
	failing    map[string]bool // problems of which a candidate was left out
	tile       *cuda.Pinned
	tileOf     graph.DType
	tileFilled bool
}

// buffer is device memory that grows, with random numbers of a type in it.
type buffer struct {
	at    cuda.Ptr
	bytes int64
	of    graph.DType
	full  bool
}

// noneWorksError says that all candidates of a list failed as they were put onto the
// stream, and how the first did.
type noneWorksError struct{ first error }

func (e noneWorksError) Error() string { return fmt.Sprintf("none works: %v", e.first) }
func (e noneWorksError) Unwrap() error { return e.first }

// first says which candidate is the first that runs.
func (t *timer) first(p linalg.Problem, list []*adapted) (int, error) {
	o, work, err := t.prepare(p, list)
	if err != nil {
		return 0, err
	}
	var failed error
	for i, k := range list {
		_, bad, err := t.run(t.c.o.Stream, k, o, work)
		if err != nil {
			return 0, fmt.Errorf("%v: %w", k, err)
		}
		if bad == nil {
			return i, nil
		}
		failed = cmp.Or(failed, bad)
		t.leftOut(p, k, bad)
	}
	return 0, noneWorksError{failed}
}

func (t *timer) leftOut(p linalg.Problem, k *adapted, bad error) {
	t.failing[p.String()] = true
	t.c.o.Say(fmt.Sprintf("%v is left out for %v: %v", k, p, bad))
}

// fastest says which candidate is, and how long it takes. One that fails when it is
// put onto the stream is left out, which is said.
func (t *timer) fastest(p linalg.Problem, list []*adapted) (best int, took time.Duration, err error) {
	o, work, err := t.prepare(p, list)
	if err != nil {
		return 0, 0, err
	}
	s := t.c.o.Stream
	times := make([][]time.Duration, len(list))
	var failed error
	for round := range rounds + 1 { // the first loads kernels and counts for nothing
		for i, k := range list {
			if round > 0 && times[i] == nil {
				continue
			}
			d, bad, err := t.run(s, k, o, work)
			switch {
			case err != nil:
				return 0, 0, fmt.Errorf("%v: %w", k, err)
			case bad != nil:
				times[i], failed = nil, cmp.Or(failed, bad)
				t.leftOut(p, k, bad)
			case round == 0:
				times[i] = []time.Duration{}
			default:
				times[i] = append(times[i], d)
			}
		}
	}
	best = -1
	for i, d := range times {
		if len(d) == 0 {
			continue
		}
		slices.Sort(d)
		if m := d[len(d)/2]; best < 0 || m < took {
			best, took = i, m
		}
	}
	if best < 0 {
		return 0, 0, noneWorksError{failed}
	}
	return best, took, nil
}

// run times one run. bad is a candidate's own failure, err the machine's: that its memory is
// full, too, as this says nothing of the candidate.
func (t *timer) run(s *cuda.Stream, k *adapted, o linalg.Operands, work cuda.Ptr) (took time.Duration, bad, err error) {
	t.c.o.Tick()
	if err := s.Memset(t.cache.at, 0, t.cache.bytes); err != nil {
		return 0, nil, err
	}
	if err := s.Record(t.from); err != nil {
		return 0, nil, err
	}
	if bad := k.Enqueue(s, o, work); bad != nil {
		if full(bad) {
			bad, err = nil, bad
		}
		return 0, bad, cmp.Or(err, s.Sync(context.Background()))
	}
	if err := s.Record(t.to); err != nil {
		return 0, nil, err
	}
	if err := s.Sync(context.Background()); err != nil {
		return 0, nil, err
	}
	took, err = t.c.o.Device.Elapsed(t.from, t.to)
	return took, nil, err
}

// full says whether an error is of the device's memory, by the driver or by a library.
func full(err error) bool {
	if _, ok := errors.AsType[*cuda.OutOfMemory](err); ok {
		return true
	}
	var library interface{ DeviceFull() bool }
	return errors.As(err, &library) && library.DeviceFull()
}

// prepare makes room for a problem and all its candidates, and fills the operands.
func (t *timer) prepare(p linalg.Problem, list []*adapted) (o linalg.Operands, work cuda.Ptr, err error) {
	if t.from == nil {
		if t.from, err = t.c.o.Device.NewEvent(true); err != nil {
			return o, 0, err
		}
	}
	if t.to == nil {
		if t.to, err = t.c.o.Device.NewEvent(true); err != nil {
			return o, 0, err
		}
	}
	n := int64(0)
	for _, k := range list {
		n = max(n, k.Workspace())
	}
	ty := p.Types()
	dst, a, b := p.Lens()
	for _, x := range []struct {
		b     *buffer
		bytes int64
	}{{&t.cache, caches * t.c.o.Device.Info().L2}, {&t.work, n}, {&t.dst, dst * int64(ty.Dst.Size())}, {&t.a, a * int64(ty.A.Size())}, {&t.b, b * int64(ty.B.Size())}} {
		if err := t.grow(x.b, x.bytes); err != nil {
			return o, 0, err
		}
	}
	if err := cmp.Or(t.fill(&t.a, ty.A), t.fill(&t.b, ty.B)); err != nil {
		return o, 0, err
	}
	return linalg.Operands{Dst: t.dst.at, A: t.a.at, B: t.b.at}, t.work.at, nil
}

func (t *timer) grow(b *buffer, bytes int64) error {
	if b.bytes >= bytes {
		return nil
	}
	if err := t.release(b); err != nil {
		return err
	}
	at, err := t.c.o.Alloc(bytes, "kernels that are timed")
	if err != nil {
		return err
	}
	*b = buffer{at: at, bytes: bytes}
	return nil
}

func (t *timer) release(b *buffer) error {
	if b.bytes == 0 {
		return nil
	}
	at := b.at
	*b = buffer{}
	return t.c.o.Free(at)
}

// tileBytes of random numbers are repeated.
const tileBytes = 1 << 20

// fill puts random numbers of a type into a buffer: a tile from the host, and then
// copies of what is there.
func (t *timer) fill(b *buffer, d graph.DType) error {
	if b.full && b.of == d {
		return nil
	}
	if err := t.makeTile(d); err != nil {
		return err
	}
	s := t.c.o.Stream
	have := min(tileBytes, b.bytes)
	if err := s.CopyIn(b.at, t.tile, 0, int(have)); err != nil {
		return err
	}
	for have < b.bytes {
		n := min(have, b.bytes-have)
		if err := s.CopyDevice(b.at+cuda.Ptr(have), b.at, n); err != nil {
			return err
		}
		have += n
	}
	b.of, b.full = d, true
	return nil
}

func (t *timer) makeTile(d graph.DType) (err error) {
	if t.tileFilled && t.tileOf == d {
		return nil
	}
	if t.tile == nil {
		if t.tile, err = t.c.o.Device.AllocPinned(tileBytes); err != nil {
			return err
		}
	} else if err := t.c.o.Stream.Sync(context.Background()); err != nil { // it may still be read
		return err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	bytes := t.tile.Bytes()
	for i := 0; i < tileBytes; i += d.Size() {
		v := 2*rnd.Float64() - 1
		switch d {
		case graph.F64:
			binary.NativeEndian.PutUint64(bytes[i:], math.Float64bits(v))
		case graph.BF16:
			binary.NativeEndian.PutUint16(bytes[i:], collective.ToBF16(float32(v)))
		default:
			binary.NativeEndian.PutUint32(bytes[i:], math.Float32bits(float32(v)))
		}
	}
	t.tileOf, t.tileFilled = d, true
	return nil
}

// close releases the memory, once the stream is idle.
func (t *timer) close() error {
	if t.from == nil && t.tile == nil {
		return nil
	}
	errs := []error{t.c.o.Stream.Sync(context.Background())}
	for _, b := range []*buffer{&t.cache, &t.dst, &t.work, &t.a, &t.b} {
		errs = append(errs, t.release(b))
	}
	for _, e := range []*cuda.Event{t.from, t.to} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if t.tile != nil {
		errs = append(errs, t.tile.Free())
	}
	return cmp.Or(errs...)
}
