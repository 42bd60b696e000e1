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
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// small is a convolution and a product of the convolution's size, of k channels.
func small(t *testing.T, k int) *graph.Graph {
	t.Helper()
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 2, k, 4, 4)), b.Input("w", graph.T(graph.F32, 4, k, 3, 3))
	y := b.Reshape(b.Apply(graph.Conv2D{Conv: graph.NewConv(3, 1, 1)}, x, w)[0], graph.D(8, 16))
	b.Output("y", b.MatMul(y, y, false, true))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCompileBeside compiles programs on several goroutines while another one runs its own:
// the libraries, what is chosen and the streams on which that is timed are those of all.
func TestCompileBeside(t *testing.T) {
	m := cudatest.Use(t)
	var trace func(exec.Event)
	p := branching(t, Config{Lanes: 2}, &trace)
	over := make(chan struct{})
	var all, others sync.WaitGroup
	for k := range 3 {
		others.Go(func() {
			q, err := p.b.Compile(small(t, k+1), exec.Options{Name: fmt.Sprint("small ", k), Deterministic: k == 0})
			if err == nil {
				err = errors.Join(exec.Run(t.Context(), q), q.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		var want []float32
		for n, last := 0, false; !last; n++ {
			select {
			case <-over:
				last = true
			default:
			}
			if err := exec.Run(t.Context(), p); err != nil {
				t.Error(err)
				return
			}
			got := slices.Clone(p.Output("y0").F32())
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("run %d: other bits", n)
			}
		}
	})
	others.Wait()
	close(over)
	all.Wait()
	if err := errors.Join(p.Close(), p.b.Close()); err != nil {
		t.Error(err)
	}
	m.Clean()
}

// TestLoadBeside: who queues a run does not wait for kernels that are compiled meanwhile; who
// wants one of them waits for it, and has why it could not be.
func TestLoadBeside(t *testing.T) {
	m := cudatest.Use(t)
	b, err := New(Config{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Slow("nvrtcCompileProgram", 1, 2*hung)
	began, calls := time.Now(), m.Calls("nvrtcCompileProgram")
	errs := make([]error, 2)
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() { errs[k] = b.load(map[string]string{"odd": "this is no kernel"}) })
	}
	for m.Calls("nvrtcCompileProgram") == calls {
		time.Sleep(time.Millisecond)
	}
	if b.largest(1); time.Since(began) > hung {
		t.Errorf("the backend's memory could be asked for after %v", time.Since(began))
	}
	m.Wake()
	all.Wait()
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "kernel odd: ") {
			t.Errorf("got %v", err)
		}
	}
	if n := m.Calls("nvrtcCompileProgram") - calls; n != 1 || b.modules["odd"] != nil {
		t.Errorf("it was compiled %d times, and there is %v", n, b.modules["odd"])
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	m.Clean()
}

// TestCompileBehindRuns: ranks compile one program after the other while runs of the one
// before are queued, whose sums are made in our order, in memory that each needs more of.
func TestCompileBehindRuns(t *testing.T) {
	for _, transport := range []Transport{TransportNCCL, TransportStaged} {
		onTwoGPUs(t, func(r int, below collective.Comm) (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b, err := New(Config{Plain: true, Ordinal: r, Lanes: 2, Transport: transport, Deterministic: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Close()) }()
			comm, err := b.Connect(ctx, below)
			if err != nil {
				return err
			}
			var programs []exec.Program
			defer func() {
				for _, p := range programs {
					err = errors.Join(err, p.Close())
				}
			}()
			for n := range 4 {
				p, err := b.Compile(summed(t, 100<<n), exec.Options{Name: fmt.Sprint("sums ", n), Comm: comm})
				if err != nil {
					return err
				}
				if err := threes(ctx, programs); err != nil {
					return err
				}
				programs = append(programs, p)
				for _, p := range programs {
					for i := range p.Input("x").F32() {
						p.Input("x").F32()[i] = float32(r + 1)
					}
					if err := p.Launch(ctx); err != nil {
						return err
					}
				}
			}
			if err := threes(ctx, programs); err != nil {
				return err
			}
			return nil
		})
	}
}

// threes waits for programs, whose sums are 3.
func threes(ctx context.Context, programs []exec.Program) error {
	for _, p := range programs {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if y := p.Output("y").F32()[0]; y != 3 {
			return fmt.Errorf("the sum is %v, want 3", y)
		}
	}
	return nil
}

// summed is the sum of n numbers over all ranks.
func summed(t *testing.T, n int) *graph.Graph {
	var b graph.Builder
	b.Output("y", b.AllReduce(collective.Sum, "sum", b.Input("x", graph.T(graph.F32, n)))[0])
	g, err := b.Build()
	if err != nil {
		t.Error(err)
	}
	return g
}
