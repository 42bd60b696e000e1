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
)

// ranksRun is what two ranks make of runs of the shared program that NCCL joins.
type ranksRun struct {
	mu       sync.Mutex
	said     []string // by all ranks, but for what Connect says
	bits     [2][]float32
	eager    [2]bool
	captured [2]bool // there is a graph
	errs     [2]error
	reduced  int // collectives that have run
}

func (o *ranksRun) say(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !strings.Contains(s, "ranks reduce by NCCL") {
		o.said = append(o.said, s)
	}
}

// rank is the life of one of them; between is called before each run.
func (o *ranksRun) rank(ctx context.Context, t *testing.T, c Config, below collective.Comm, runs int, between func(rank, run int, p *program) error) (err error) {
	r := below.Rank()
	c.Plain, c.Ordinal, c.Lanes, c.Say = true, r, 3, o.say
	p, done, err := sharedOver(ctx, t, c, below, exec.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for n := range runs {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32((i+n)%7) / 70
		}
		if err := between(r, n, p); err != nil {
			return err
		}
		if err := exec.Run(ctx, p); err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		o.bits[r] = append(o.bits[r], p.Output("y").F32()...)
	}
	o.eager[r], o.captured[r] = p.eager, p.replayed() != nil
	return nil
}

// runRanks has two ranks run the shared program so often; each is told what the other does
// by nothing but their Comms.
func runRanks(t *testing.T, c [2]Config, runs int, between func(rank, run int, p *program) error, faults ...string) *ranksRun {
	t.Helper()
	o, m := &ranksRun{}, cudatest.Use(t)
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o.errs[r] = o.rank(ctx, t, c[r], below, runs, between)
		return ctx.Err()
	}, faults...)
	o.reduced = m.Calls("run:ncclAllReduce")
	return o
}

func undisturbed(int, int, *program) error { return nil }

// alike are two ranks of one Config.
func alike(c Config) [2]Config { return [2]Config{c, c} }

// TestOneRankCannotCapture: where a capture fails on one rank, no rank replays, all have the
// same bits, and the rank says once why.
func TestOneRankCannotCapture(t *testing.T) {
	const runs = firstMeasured + 2
	want := runRanks(t, alike(Config{Graphs: GraphsOff}), runs, undisturbed)
	for _, fault := range []string{"cuStreamBeginCapture_v2=1=999", "cuStreamEndCapture=1=901", "cuGraphGetNodes=1=1", "cuGraphInstantiateWithFlags=1=801",
		"cuStreamBeginCapture_v2=3=999", "cuGraphInstantiateWithFlags=4=801"} { // of the second slot's graph: that of the first is there
		t.Run(fault, func(t *testing.T) {
			o := runRanks(t, alike(Config{}), runs, undisturbed, fault)
			if err := errors.Join(o.errs[:]...); err != nil {
				t.Fatal(err)
			}
			if o.eager != [2]bool{true, true} || o.captured != [2]bool{} {
				t.Errorf("ranks are launched step by step: %v, and have graphs: %v", o.eager, o.captured)
			}
			call, _, _ := strings.Cut(fault, "=")
			if len(o.said) != 1 || !strings.Contains(o.said[0], call) || !strings.Contains(o.said[0], "launched one by one") {
				t.Errorf("said %q", o.said)
			}
			if o.reduced != want.reduced || o.reduced != 2*2*runs {
				t.Errorf("%d collectives have run, want %d", o.reduced, want.reduced)
			}
			for r := range o.bits {
				if !slices.Equal(o.bits[r], want.bits[r]) {
					t.Errorf("rank %d: other bits", r)
				}
			}
		})
	}
}

// TestOneRankCannotMeasure: where the capture of a run that measures fails on one rank, none
// measures and all replay.
func TestOneRankCannotMeasure(t *testing.T) {
	unmeasured := [2]bool{}
	o := runRanks(t, alike(Config{}), firstMeasured+2, func(r, n int, p *program) error {
		unmeasured[r] = n > firstMeasured && p.unmeasured
		return nil
	}, "cuStreamBeginCapture_v2=5=999")
	if err := errors.Join(o.errs[:]...); err != nil {
		t.Fatal(err)
	}
	if unmeasured != [2]bool{true, true} || o.captured != [2]bool{true, true} || len(o.said) != 1 || !strings.Contains(o.said[0], "cannot be measured") {
		t.Errorf("ranks do not measure: %v, and have graphs: %v; said %q", unmeasured, o.captured, o.said)
	}
}

// TestOneRankIsNotCaptured: where one rank is not to capture, none does, unless another one
// must.
func TestOneRankIsNotCaptured(t *testing.T) {
	o := runRanks(t, [2]Config{{}, {Graphs: GraphsOff}}, 3, undisturbed)
	if err := errors.Join(o.errs[:]...); err != nil || o.eager != [2]bool{true, true} || len(o.said) > 0 {
		t.Errorf("ranks are launched step by step: %v; said %q: %v", o.eager, o.said, err)
	}
	o = runRanks(t, [2]Config{{Graphs: GraphsOn}, {Graphs: GraphsOff}}, 3, undisturbed)
	if o.errs[0] == nil || !strings.Contains(o.errs[0].Error(), "want all ranks alike") || o.errs[1] == nil {
		t.Errorf("got %v", o.errs)
	}
}

// TestStagedIsNotCaptured: where a rank must capture, and ranks reduce through host memory, all
// are told so.
func TestStagedIsNotCaptured(t *testing.T) {
	staged := Config{Transport: TransportStaged}
	must := staged
	must.Graphs = GraphsOn
	for _, c := range [][2]Config{alike(must), {staged, must}} {
		o := runRanks(t, c, 3, undisturbed)
		for r, err := range o.errs {
			if err == nil || !strings.Contains(err.Error(), "what ranks reduce through host memory is not: want a GPU for each rank") {
				t.Errorf("rank %d of %v: got %v", r, c, err)
			}
		}
	}
}

// TestCaptureEndsTheGroup: what a rank cannot do without ends all ranks soon: a graph that
// must be, a collective that NCCL refuses while it is captured, a rank that fails or leaves
// before its capture, which the other waits for.
func TestCaptureEndsTheGroup(t *testing.T) {
	fails := func(does func(p *program) error) func(int, int, *program) error {
		return func(r, n int, p *program) error {
			if r == 1 && n == 1 {
				return does(p)
			}
			return nil
		}
	}
	gone := errors.New("rank 1 has had enough")
	for _, c := range []struct {
		name    string
		faults  []string
		c       Config
		between func(int, int, *program) error
	}{
		{"a graph must be", []string{"cuGraphInstantiateWithFlags=1=801"}, Config{Graphs: GraphsOn}, undisturbed},
		{"a collective is refused", []string{"ncclAllReduce=5=3"}, Config{}, undisturbed}, // four are of the first run
		{"the device is lost", []string{"cuStreamBeginCapture_v2=1=700"}, Config{}, undisturbed},
		{"a rank fails", nil, Config{}, fails(func(p *program) error { p.comm.Abort(gone); return gone })},
		{"a rank leaves", nil, Config{}, fails(func(*program) error { return gone })},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := runRanks(t, alike(c.c), 3, c.between, c.faults...)
			if o.errs[0] == nil || o.errs[1] == nil {
				t.Errorf("got %v", o.errs)
			}
			if len(o.said) > 0 {
				t.Errorf("said %q", o.said)
			}
		})
	}
}

// TestCannotCapture: a rank alone whose capture fails says so once, and launches steps one by
// one from then on, traced or not, with the same bits.
func TestCannotCapture(t *testing.T) {
	g := scene()
	cudatest.Use(t)
	want, err := play(g, Config{Plain: true, Graphs: GraphsOff}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"cuStreamBeginCapture_v2=1=999", "cuStreamEndCapture=1=901", "cuGraphGetNodes=1=1", "cuGraphInstantiateWithFlags=1=801", "cuGraphInstantiateWithFlags=2=801"} {
		t.Run(fault, func(t *testing.T) {
			m := cudatest.Use(t)
			m.Set("FAULT", fault)
			var said []string
			got, err := play(g, Config{Plain: true, Say: func(s string) { said = append(said, s) }}, 4)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Error("other bits")
			}
			if len(said) != 1 || !strings.Contains(said[0], "launched one by one") {
				t.Errorf("said %q", said)
			}
			if n := m.Calls("cuStreamBeginCapture_v2"); n > 2 || strings.Contains(fault, "=1=") && n > 1 {
				t.Errorf("%d captures", n)
			}
			m.Clean()
		})
	}
}
