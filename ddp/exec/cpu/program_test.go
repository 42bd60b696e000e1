package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/threads/threadstest"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// Runs of equal programs give the same bits, whatever ran before, for each
// number of threads.
func TestDeterminism(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		if exectest.Race && threads < 3 {
			continue
		}
		var want []byte
		for range 2 {
			be := open(t, Config{Threads: threads})
			p := compileStep(t, be, 4, 4, exec.Options{})
			for range 3 {
				if err := exec.Run(context.Background(), p); err != nil {
					t.Fatal(err)
				}
			}
			var got []byte
			for _, v := range p.(*program).vars {
				got = append(got, v.Bytes()...)
			}
			got = append(append(got, p.Output("upper").Bytes()...), p.Output("lower").Bytes()...)
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d threads: two equal runs differ", threads)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, threads := range []int{1, 2} {
		p := compileStep(t, open(t, Config{Threads: threads}), 4, 4, exec.Options{Profile: true})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if n := allocations(t, ctx, p); n > 0 {
			t.Errorf("%d threads: a run allocates %v times", threads, n)
		}
	}
}

// TestClosedIsForgotten: the arena of a closed program is nobody's, so that the next program of
// the backend does not come on top of it.
func TestClosedIsForgotten(t *testing.T) {
	for _, threads := range []int{1, 2} {
		p := compileStep(t, open(t, Config{Threads: threads}), 4, 4, exec.Options{})
		if err := exec.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		arena := weak.Make(&p.(*program).arena[0])
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if !threadstest.Forgotten(arena) {
			t.Errorf("%d threads: the arena is still reachable", threads)
		}
	}
}

// allocations is how often a run allocates. The least of a few measurements
// counts: the runtime's own caches grow now and then.
func allocations(t *testing.T, ctx context.Context, p exec.Program) float64 {
	t.Helper()
	least := math.Inf(1)
	for range 4 {
		least = min(least, testing.AllocsPerRun(2, func() {
			if err := exec.Run(ctx, p); err != nil {
				t.Fatal(err)
			}
		}))
		if least == 0 {
			break
		}
	}
	return least
}

func TestStats(t *testing.T) {
	p := compileStep(t, open(t, Config{Threads: 1}), 4, 4, exec.Options{Profile: true})
	for range 2 {
		if err := exec.Run(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	s := p.Stats()
	if s.Runs != 2 || s.RunTime <= 0 || s.Nodes < 100 || s.Steps >= s.Nodes || s.PeakBytes <= 0 || s.VarBytes <= 0 {
		t.Errorf("implausible: %+v", s)
	}
	conv := s.Ops["Conv2D"]
	if conv.Calls == 0 || conv.Calls%2 != 0 || conv.Flops == 0 || conv.Time <= 0 || s.Ops["Fused"].Calls == 0 {
		t.Errorf("implausible: %+v", s.Ops)
	}
}

// lookup is a graph that fails if its input is out of range.
func lookup(t *testing.T, reduce bool) *graph.Graph {
	t.Helper()
	var b graph.Builder
	table := b.Input("table", graph.T(graph.F32, 3, 2))
	b.Scope("generator", func() {
		b.Scope("bn2", func() {
			y := b.Gather(table, b.Input("idx", graph.T(graph.I32, 2)))
			if reduce {
				y = b.AllReduce(collective.Sum, "sum", y)[0]
			}
			b.Output("y", y)
		})
	})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestErrorsNameOpAndScope(t *testing.T) {
	be := open(t, Config{Threads: 1})
	p, err := be.Compile(lookup(t, false), exec.Options{Name: "step"})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	p.Input("idx").SetAt(1, 3)
	err = exec.Run(context.Background(), p)
	if want := `program "step": generator/bn2: gather: index 3 at 1 is outside a table of 3 rows`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	p.Input("idx").SetAt(1, 2)
	if err := exec.Run(context.Background(), p); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

// A rank that fails ends the group: the other is not left waiting.
func TestErrorEndsTheGroup(t *testing.T) {
	g, comms := lookup(t, true), exectest.NewGroup(2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r := range comms {
		p, err := open(t, Config{Threads: 1}).Compile(g, exec.Options{Name: "step", Comm: comms[r]})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, p)
		p.Input("idx").SetAt(0, float64(7*r))
		wg.Go(func() { errs[r] = exec.Run(context.Background(), p) })
	}
	wg.Wait()
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "index 7") {
		t.Errorf("the rank at fault: %v", errs[1])
	}
	if errs[0] == nil || !strings.Contains(errs[0].Error(), `generator/bn2: wait allreduce{sum "sum"}`) {
		t.Errorf("the other rank: %v", errs[0])
	}
}

// The end of either context ends the wait for a collective that never comes.
func TestCancel(t *testing.T) {
	cause := errors.New("enough")
	for _, which := range []string{"Launch", "Wait"} {
		p, err := open(t, Config{Threads: 1}).Compile(lookup(t, true), exec.Options{Name: "step", Comm: exectest.NewGroup(2)[0]})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		launch, wait := context.Background(), ctx
		if which == "Launch" {
			launch, wait = wait, launch
		}
		if err := p.Launch(launch); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		if err := p.Wait(wait); !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %v", which, err, cause)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLaunchAndWaitAlternate(t *testing.T) {
	p := compileStep(t, open(t, Config{Threads: 1}), 2, 4, exec.Options{})
	ctx := context.Background()
	if err := p.Wait(ctx); err == nil {
		t.Error("Wait without Launch is no error")
	}
	if err := p.Launch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Launch(ctx); err == nil {
		t.Error("a second Launch is no error")
	}
	if err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// Two ranks on halves of a batch, with batch norm over both, take the step of
// one rank on the whole batch.
func TestRanksAgree(t *testing.T) {
	one := ranks(t, 1)
	two := ranks(t, 2)
	for r := range two {
		for name, want := range one[0] {
			for i := range want.F32() {
				if d := abs(two[r][name].At(i) - want.At(i)); d > 2e-5+1e-3*abs(want.At(i)) {
					t.Fatalf("rank %d, %s[%d]: %v, want %v", r, name, i, two[r][name].At(i), want.At(i))
				}
			}
		}
		for name, got := range two[r] {
			if !bytes.Equal(got.Bytes(), two[0][name].Bytes()) {
				t.Errorf("%s differs between ranks", name)
			}
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

// ranks trains for two steps on a group and returns each rank's variables.
func ranks(t *testing.T, n int) []map[string]*exec.Tensor {
	const batch = 8
	results, errs := make([]map[string]*exec.Tensor, n), make([]error, n)
	var wg sync.WaitGroup
	for r, comm := range exectest.NewGroup(n) {
		be := open(t, Config{Threads: 1})
		wg.Go(func() {
			results[r], errs[r] = train(be, comm, batch/n)
			if errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results
}

func train(be exec.Backend, comm collective.Comm, batch int) (map[string]*exec.Tensor, error) {
	m, g, err := bidvl(batch, 4, true)
	if err != nil {
		return nil, err
	}
	vars := be.NewVars()
	if err := m.set(vars); err != nil {
		return nil, err
	}
	p, err := be.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm})
	if err != nil {
		return nil, err
	}
	p.Input("rate").SetAt(0, 1)
	first := 0
	if comm != nil {
		first = batch * comm.Rank()
	}
	v := p.Input("v")
	for i := range v.F32() {
		v.F32()[i] = float32((i+first*3*32*32)*7919%1000)/500 - 1
	}
	p.Input("key").SetAt(2, float64(first))
	for step := range 2 {
		p.Input("key").SetAt(1, float64(step))
		if err := exec.Run(context.Background(), p); err != nil {
			return nil, err
		}
	}
	out := map[string]*exec.Tensor{}
	for _, name := range vars.Names() {
		if out[name], err = vars.Get(name); err != nil {
			return nil, err
		}
	}
	return out, p.Close()
}

func TestVars(t *testing.T) {
	v := open(t, Config{Threads: 1}).NewVars()
	x := exec.NewTensor(graph.T(graph.F32, 2))
	x.SetAt(1, 5)
	if err := v.Set("x", x); err != nil {
		t.Fatal(err)
	}
	x.SetAt(1, 6)
	if got, err := v.Get("x"); err != nil || got.At(1) != 5 {
		t.Errorf("got %v, %v; want a copy of what was set", got, err)
	}
	if err := v.Set("x", exec.NewTensor(graph.T(graph.F32, 3))); err == nil {
		t.Error("a variable changed its type")
	}
	if _, err := v.Get("y"); err == nil {
		t.Error("a variable that is not there was got")
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{Threads: -1}); err == nil {
		t.Error("-1 threads are no error")
	}
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d threads)", runtime.GOMAXPROCS(0))
	if runtime.GOMAXPROCS(0) == 1 {
		want = "1 thread)"
	}
	if !strings.HasSuffix(b.Name(), want) {
		t.Errorf("the default is %s, want %s", b.Name(), want)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// No kernel allocates memory in a run.
func TestNoKernelAllocates(t *testing.T) {
	be := open(t, Config{Threads: 2})
	for _, c := range exectest.Cases() {
		g, err := c.Graph(graph.F32, graph.Input)
		if err != nil {
			t.Fatal(err)
		}
		p, err := be.Compile(g, exec.Options{Name: c.Name})
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range c.Tensors(graph.F32) {
			if in := p.Input(name); in != nil {
				copy(in.Bytes(), x.Bytes())
			}
		}
		if n := allocations(t, context.Background(), p); n > 0 {
			t.Errorf("%s: a run allocates %v times", c.Name, n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
