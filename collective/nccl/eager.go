package nccl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// device carries out what was started, when the ranks have agreed on it, on the
// goroutine of the group that does.
type device struct{ *Comm }

var _ host.Device = device{}

// Alloc is Comm.Alloc.
func (d device) Alloc(in *host.Inside, n int) (collective.Vec, error) {
	if n == 0 {
		return cuda.Ptr(0).Vec(0), nil
	}
	p, err := d.memory.alloc(in, n)
	if err != nil {
		return collective.Vec{}, err
	}
	if err := d.stream.Memset(p, 0, int64(n)); err != nil {
		return collective.Vec{}, err
	}
	return p.Vec(n), d.finish(in, collective.Request{Kind: collective.Allocation})
}

// Run carries out req.
func (d device) Run(in *host.Inside, req collective.Request) error {
	if req.Vec.Len == 0 {
		return nil
	}
	same, err := d.placedAlike(in, req.Vec)
	if err != nil {
		return err
	}
	if err := d.mover.need(req, &d.started); err != nil {
		return err
	}
	if same {
		if err := d.mover.enqueue(d.stream, req, &d.started); err != nil {
			return err
		}
		return d.finish(in, req)
	}
	return d.detour(in, req)
}

// placedAlike says whether all ranks' vectors lie at one place: NCCL may be
// given memory that is registered on all ranks or on none.
func (d device) placedAlike(in *host.Inside, v collective.Vec) (bool, error) {
	n := in.Size()
	mine := d.memory.place(v)
	places := make([]int64, 2*n)
	places[2*in.Rank()], places[2*in.Rank()+1] = mine.slab, mine.offset
	req := collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(places), Label: "places"}
	if err := in.Do(context.Background(), req); err != nil {
		return false, err
	}
	for r := range n {
		if (place{places[2*r], places[2*r+1]}) != mine {
			return false, nil
		}
	}
	return true, nil
}

// detour runs req on a copy in memory that NCCL does not know, on every rank. After a failure
// the copy is left to Close: the device may never come to the end of what uses it, and freeing
// waits for that.
func (d device) detour(in *host.Inside, req collective.Request) error {
	bytes := int64(req.Vec.Len * req.Vec.Type.Size())
	copied, err := d.dev.Alloc(bytes)
	if err != nil {
		return err
	}
	away := req
	away.Vec = copied.Vec(int(bytes)).As(req.Vec.Type)
	err = errors.Join(
		d.stream.CopyDevice(copied, cuda.AddressOf(req.Vec), bytes),
		d.mover.enqueue(d.stream, away, &d.started),
		d.stream.CopyDevice(cuda.AddressOf(req.Vec), copied, bytes))
	if err == nil {
		err = d.finish(in, req)
	}
	if err != nil {
		d.started.all = append(d.started.all, copied)
		return err
	}
	return d.dev.Free(copied)
}

// finish waits for what is queued on the stream. Past the limit it asks the
// other ranks where they are.
func (d device) finish(in *host.Inside, req collective.Request) error {
	if err := d.stream.Record(d.over); err != nil {
		return err
	}
	err := d.await(d.over, d.options.Timeout)
	if !errors.Is(err, errLate) {
		return err
	}
	call := rollCallFor(what(req))
	ctx, stop := within(context.Background(), in, muster, call)
	defer stop()
	if err := in.CallRoll(ctx, call); err != nil {
		return err
	}
	return fmt.Errorf("%s is not complete on any rank after %v, and all ranks are alive: the GPUs or the links between them hang (NCCL_DEBUG=INFO says more)", what(req), d.options.Timeout)
}

func rollCallFor(late string) string { return "the roll call, " + late + " being late" }

func what(req collective.Request) string {
	if req.Label == "" {
		return req.String()
	}
	return fmt.Sprintf("%s %q", req, req.Label)
}

var errLate = errors.New("nccl: past its limit")

// await waits for an event until the limit; or until the group fails, and then
// a little longer, so that NCCL's kernels have let go of the memory.
func (c *Comm) await(e *cuda.Event, limit time.Duration) error {
	const least, most, letGo = 20 * time.Microsecond, time.Millisecond, time.Second
	began := time.Now()
	var failed time.Time
	for {
		ok, err := e.Query()
		switch {
		case err != nil:
			return err
		case ok: // an abort ends NCCL's kernels, too: they are complete if there was none
			return c.Failure()
		case !failed.IsZero() && time.Since(failed) > letGo:
			return c.Failure()
		}
		elapsed := time.Since(began)
		if failed.IsZero() && elapsed > limit {
			return errLate
		}
		select {
		case <-c.Failed():
			if failed.IsZero() {
				failed = time.Now()
			}
		default:
		}
		cuda.Nap(min(max(least, elapsed/64), most))
	}
}
