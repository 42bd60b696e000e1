package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
				onTwoGPUs(t, func(r int, below collective.Comm) error {
					o := c
					o.Plain, o.Ordinal = true, r
					return tracedRuns(t.Context(), t, o, below, runs, traced)
				})
			})
		}
	}
}

// onTwoGPUs runs f as two ranks beside each other, which find no error and leave nothing, on
// a machine with faults.
func onTwoGPUs(t *testing.T, f func(rank int, below collective.Comm) error, faults ...string) {
	t.Helper()
	m := cudatest.Use(t)
	m.Set("DEVICES", "2")
	for _, fault := range faults {
		m.Set("FAULT", fault)
	}
	below, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var all sync.WaitGroup
	for r := range 2 {
		all.Go(func() { errs[r] = f(r, below[r]) })
	}
	all.Wait()
	if err := errors.Join(append(errs, below[0].Close(), below[1].Close())...); err != nil {
		t.Fatal(err)
	}
	m.Clean()
}

// tracedRuns are runs of one rank, one of which is traced.
func tracedRuns(ctx context.Context, t *testing.T, c Config, below collective.Comm, runs, traced int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	asked, collectives := 0, 0
	p, done, err := sharedOver(ctx, t, c, below, exec.Options{Trace: func() func(exec.Event) {
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
	defer func() { err = errors.Join(err, done()) }()
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

// TestTracedAlone: a program without collectives is traced by a replay from the second time
// on, which tells the same launches and computes the same bits.
func TestTracedAlone(t *testing.T) {
	for _, graphs := range []Graphs{GraphsOn, GraphsOff} {
		m := cudatest.Use(t)
		b, err := New(Config{Graphs: graphs, Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		p, err := b.Compile(shared(t), exec.Options{Name: "alone", Trace: func() func(exec.Event) {
			told = nil
			return func(e exec.Event) { told = append(told, fmt.Sprint(e.Kind, e.Name, e.Scope, e.Bytes)) }
		}})
		if err != nil {
			t.Fatal(err)
		}
		var first []float32
		var launched []string
		for n := range 4 {
			for i := range p.Input("x").F32() {
				p.Input("x").F32()[i] = float32(i) / 7
			}
			if err := exec.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			got := slices.Clone(p.Output("y").F32())
			if n == 0 {
				first, launched = got, told
			}
			if !slices.Equal(got, first) || !slices.Equal(told, launched) || len(told) == 0 {
				t.Errorf("graphs %v: run %d is %v and tells %v, the first %v and %v", graphs, n, got, told, first, launched)
			}
			if replayed := p.(*program).clockedReplays(); replayed != (graphs == GraphsOn && n > 0) {
				t.Errorf("graphs %v: run %d is replayed: %v", graphs, n, replayed)
			}
		}
		if err := errors.Join(p.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
		m.Clean()
	}
}

// TestOrderOfSums: a program whose bits no number of ranks changes is not compiled over
// sums in an order of NCCL's.
func TestOrderOfSums(t *testing.T) {
	for _, c := range []Config{{}, {Deterministic: true}} {
		onTwoGPUs(t, func(r int, below collective.Comm) error {
			o := c
			o.Plain, o.Ordinal = true, r
			err, compiled := compiledOver(t.Context(), t, o, below)
			if refused := compiled != nil && strings.Contains(compiled.Error(), "Config.Deterministic"); refused == c.Deterministic {
				t.Errorf("Deterministic %v, rank %d: %v", c.Deterministic, r, compiled)
			}
			return err
		})
	}
}

// compiledOver compiles a deterministic program over what a backend joins the ranks by.
func compiledOver(ctx context.Context, t *testing.T, c Config, below collective.Comm) (err, compiled error) {
	b, err := New(c)
	if err != nil {
		return err, nil
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	comm, err := b.Connect(ctx, below)
	if err != nil {
		return err, nil
	}
	p, compiled := b.Compile(shared(t), exec.Options{Name: "shared", Comm: comm, Deterministic: true})
	if compiled == nil {
		err = p.Close()
	}
	return err, compiled
}
