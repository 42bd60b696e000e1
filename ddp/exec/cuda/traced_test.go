package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/host"
	"ebtrain/ddp/exec"
)

// TestTracedRuns: of several runs on two ranks that NCCL joins any may be traced, the first
// one, too, and those behind captured ones; all have the same bits.
func TestTracedRuns(t *testing.T) {
	const runs = 6
	for _, c := range []Config{{Graphs: GraphsOn, Lanes: 3}, {Graphs: GraphsOff, Lanes: 3}} {
		for traced := range runs {
			t.Run(fmt.Sprintf("graphs %v, run %d", c.Graphs, traced), func(t *testing.T) {
				m := cudatest.Use(t)
				m.Set("DEVICES", "2")
				below, err := host.NewLocal(t.Context(), 2)
				if err != nil {
					t.Fatal(err)
				}
				errs := make([]error, 2)
				var all sync.WaitGroup
				for r := range 2 {
					all.Go(func() {
						o := c
						o.Plain, o.Ordinal = true, r
						errs[r] = tracedRuns(t.Context(), t, o, below[r], runs, traced)
					})
				}
				all.Wait()
				if err := errors.Join(append(errs, below[0].Close(), below[1].Close())...); err != nil {
					t.Fatal(err)
				}
				m.Clean()
			})
		}
	}
}

// tracedRuns are runs of one rank, one of which is traced.
func tracedRuns(ctx context.Context, t *testing.T, c Config, below collective.Comm, runs, traced int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b, err := New(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	comm, err := b.Connect(ctx, below)
	if err != nil {
		return err
	}
	asked, collectives := 0, 0
	p, err := b.Compile(shared(t), exec.Options{Name: "shared", Comm: comm, Trace: func() func(exec.Event) {
		if asked++; asked != traced+1 {
			return nil
		}
		return func(e exec.Event) {
			if e.Kind == exec.Collective {
				collectives++
			}
		}
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var first []float32
	for n := range runs {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32(i%7) / 70
		}
		if err := exec.Run(ctx, p); err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		if y := p.Output("y").F32(); n == 0 {
			first = slices.Clone(y)
		} else if !slices.Equal(y, first) {
			return fmt.Errorf("run %d: other bits", n)
		}
	}
	if collectives != 2 {
		return fmt.Errorf("the trace has %d collectives, want 2", collectives)
	}
	return nil
}
