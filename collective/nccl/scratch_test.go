//go:build cgo

package nccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
)

// TestScratch: what is started while an enqueued sum in a fixed order is still under way,
// in a stream or in a graph, leaves its slices alone.
func TestScratch(t *testing.T) {
	t.Setenv("EBDOUBLE_FAULT", "run:tree_f32=0=~40") // our own kernel is held up
	o := options()
	o.FixedOrder = true
	m := cudatest.Use(t)
	together(t, group(t, 3, o), func(x *member) error {
		p, err := newScatter(t.Context(), x)
		defer func() { _ = p.close() }() // where it was not reached
		if err != nil {
			return err
		}
		if err := p.besides(t.Context(), m, p.enqueue); err != nil {
			return fmt.Errorf("enqueued: %w", err)
		}
		if err := p.capture(); err != nil {
			return err
		}
		if err := p.besides(t.Context(), m, func() error { return p.graph.Launch(p.s) }); err != nil {
			return fmt.Errorf("captured: %w", err)
		}
		return p.close()
	})
}

const scattered = 3 << 10 // elements

// newScatter is a program of a reduce-scatter, which ends with our own kernel.
func newScatter(ctx context.Context, x *member) (*program, error) {
	p := &program{member: x}
	var errs [4]error
	p.mem, errs[0] = x.Alloc(8 * scattered)
	p.s, errs[1] = x.dev.NewStream("program", 0)
	p.over, errs[2] = x.dev.NewEvent(false)
	p.stage, errs[3] = x.dev.AllocPinned(4 * scattered)
	if err := errors.Join(errs[:]...); err != nil {
		return p, err
	}
	p.reqs = []collective.Request{{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: p.mem.Slice(0, 4*scattered).As(collective.F32), Label: "held up"}}
	return p, x.Agree(ctx, p.reqs)
}

// besides starts an all-reduce while the program's kernels are held up.
func (p *program) besides(ctx context.Context, m *cudatest.Machine, start func() error) error {
	in := make([]float32, scattered)
	for i := range in {
		in[i] = float32((i*7+p.Rank())%101)*0.37 - 18
	}
	copy(p.stage.Bytes(), collective.VecOf(in).Bytes())
	begun := m.Calls("run:tree_f32") // no kernel begins before all ranks have come
	if err := start(); err != nil {
		return err
	}
	for m.Calls("run:tree_f32") < begun+p.Size() && p.Failure() == nil {
		time.Sleep(time.Millisecond)
	}
	other := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: p.mem.Slice(4*scattered, 8*scattered).As(collective.F32), Label: "besides"}
	if err := errors.Join(collective.Do(ctx, p, other), p.s.Record(p.over), p.Await(ctx, p.over)); err != nil {
		return err
	}
	want := collective.VecOf(in)
	if err := collective.Do(ctx, p.below, collective.Request{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: want}); err != nil {
		return err
	}
	n := 4 * scattered / p.Size()
	if mine := p.Rank() * n; !bytes.Equal(p.stage.Bytes()[mine:mine+n], want.Bytes()[mine:mine+n]) {
		return errors.New("the sum that was held up has other bits than the group of the hosts")
	}
	return nil
}
