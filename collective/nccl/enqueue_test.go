//go:build cgo

package nccl_test

import (
	"context"
	"errors"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// TestEnqueueBehindStart: what was started, and not waited for, is over before what is enqueued
// behind it begins.
func TestEnqueueBehindStart(t *testing.T) {
	t.Setenv("EBDOUBLE_FAULT", "run:ncclBroadcast=0=~40")
	together(t, group(t, 3, options()), func(x *member) error {
		p := &program{member: x}
		defer func() { _ = p.close() }() // where it was not reached
		var errs [4]error
		p.mem, errs[0] = x.Alloc(4096)
		p.s, errs[1] = x.dev.NewStream("program", 0)
		p.over, errs[2] = x.dev.NewEvent(false)
		p.stage, errs[3] = x.dev.AllocPinned(4096)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		vec := p.mem.As(collective.F32)
		behind := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec, Label: "behind"}
		if err := x.Agree(t.Context(), []collective.Request{behind}); err != nil {
			return err
		}
		in := make([]float32, vec.Len)
		for i := range in {
			in[i] = float32(i + 1000*x.Rank())
		}
		copy(p.stage.Bytes(), collective.VecOf(in).Bytes())
		if err := errors.Join(p.s.CopyIn(cuda.AddressOf(p.mem), p.stage, 0, 4096), p.s.Sync(context.Background())); err != nil {
			return err
		}
		started := x.Start(collective.Request{Kind: collective.Broadcast, Root: 1, Vec: vec, Label: "before"})
		if err := errors.Join(x.Enqueue(p.s, behind), p.s.CopyOut(p.stage, 0, cuda.AddressOf(p.mem), 4096), p.s.Record(p.over), x.Await(t.Context(), p.over), started.Wait(t.Context())); err != nil {
			return err
		}
		want := make([]float32, vec.Len)
		for i := range want {
			want[i] = 3 * float32(i+1000)
		}
		if string(p.stage.Bytes()) != string(collective.VecOf(want).Bytes()) {
			return errors.New("the sum is not that of what was broadcast before")
		}
		return p.close()
	})
}
