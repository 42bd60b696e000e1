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
	"ebtrain/ddp/graph"
)

// shared is a program with two collectives, of which the second needs the first.
func shared(t *testing.T) *graph.Graph {
	var b graph.Builder
	x := b.Exp(b.Input("x", graph.T(graph.F32, 40, 40)))
	for _, label := range []string{"first", "second"} {
		x = b.Tanh(b.MatMul(b.AllReduce(collective.Mean, label, x)[0], x, false, false))
	}
	b.Output("y", x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCovered: what lanes wait at the same time counts once.
func TestCovered(t *testing.T) {
	for _, c := range []struct {
		spans [][2]time.Duration
		want  time.Duration
	}{
		{nil, 0},
		{[][2]time.Duration{{3, 5}, {10, 14}}, 6},
		{[][2]time.Duration{{10, 14}, {3, 12}}, 11},        // they overlap
		{[][2]time.Duration{{1, 20}, {4, 6}, {5, 21}}, 20}, // one is within
		{[][2]time.Duration{{4, 9}, {4, 9}}, 5},
		{[][2]time.Duration{{7, 2}}, 0}, // nobody waited
	} {
		if got := covered(c.spans); got != c.want {
			t.Errorf("%v: got %d, want %d", c.spans, got, c.want)
		}
	}
}

// TestAccounts: time in which two runs were queued counts once, and no run is told to have
// waited for collectives longer than it took, though how long that was is known of an earlier
// one only.
func TestAccounts(t *testing.T) {
	p := &program{wait: time.Hour}
	began := time.Now().Add(-time.Minute)
	for range 2 {
		if err := p.account(&flight{began: began}); err != nil {
			t.Fatal(err)
		}
	}
	all := time.Since(began)
	if s := p.Stats(); s.Runs != 2 || s.RunTime < time.Minute || s.RunTime > all || s.CommWait > s.RunTime {
		t.Errorf("%d runs in %v took %v, of which they waited %v", s.Runs, all, s.RunTime, s.CommWait)
	}
}

// TestWaits: a rank whose peer begins a run later is told that it has waited, captured
// or not, with the results of a run that does not measure; in a graph that measures, two
// nodes for each collective are more. Where that fails it is said, and the runs go on.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     Config
		fault string
		said  string
	}{
		{"captured", Config{Graphs: GraphsOn, Lanes: 3}, "", ""},
		{"launched", Config{Graphs: GraphsOff, Lanes: 3}, "", ""},
		{"staged", Config{Transport: TransportStaged, Lanes: 2}, "", ""},
		{"no times", Config{Graphs: GraphsOn}, "cuEventElapsedTime=1=999", "cannot be measured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := cudatest.Use(t)
			m.Set("DEVICES", "2")
			if c.fault != "" {
				m.Set("FAULT", c.fault)
			}
			var waited []time.Duration
			for _, behind := range []time.Duration{300 * time.Millisecond, time.Second, 4 * time.Second} {
				var told string
				waited, told = staggered(t, c.c, behind)
				m.Clean()
				if c.said != "" {
					if strings.Count(told, c.said) != 1 {
						t.Errorf("said %q, want %q once", told, c.said)
					}
					return
				}
				if waited[0] >= behind/2 && waited[1] < waited[0] {
					return
				}
				// On a busy machine the first device may begin after the second.
				t.Logf("%v behind, the ranks waited %v", behind, waited)
			}
			t.Errorf("the ranks waited %v, want the first to have waited for the second", waited)
		})
	}
}

// staggered is for how long two ranks have waited for each other, of which the second begins
// the run that measures so much later, and what they have said.
func staggered(t *testing.T, c Config, behind time.Duration) (waited []time.Duration, told string) {
	below, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	waited, errs, said := make([]time.Duration, 2), make([]error, 2), make([][]string, 2)
	launched := make(chan struct{}, 1)
	var all sync.WaitGroup
	for r := range 2 {
		all.Go(func() {
			o := c
			o.Plain, o.Ordinal, o.Say = true, r, func(s string) { said[r] = append(said[r], s) }
			waited[r], errs[r] = late(t, o, below[r], launched, behind)
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, below[0].Close(), below[1].Close())...); err != nil {
		t.Fatal(err)
	}
	return waited, strings.Join(slices.Concat(said...), "\n")
}

// late runs the program some times; in the run that measures rank 1 begins so much after
// rank 0.
func late(t *testing.T, c Config, below collective.Comm, launched chan struct{}, behind time.Duration) (_ time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, done, err := sharedOver(ctx, t, c, below, exec.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	var first []float32
	for n := range firstMeasured + 2 {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32(i%7) / 70
		}
		if below.Rank() == 1 {
			if <-launched; n == firstMeasured {
				time.Sleep(behind)
			}
		}
		if err := p.Launch(ctx); err != nil {
			return 0, err
		}
		if below.Rank() == 0 {
			launched <- struct{}{}
		}
		if err := p.Wait(ctx); err != nil {
			return 0, err
		}
		if y := p.Output("y").F32(); n == 0 {
			first = slices.Clone(y)
		} else if !slices.Equal(y, first) {
			return 0, fmt.Errorf("run %d: other bits", n)
		}
		if n < firstMeasured && p.Stats().CommWait != 0 {
			return 0, fmt.Errorf("run %d: %v were waited", n, p.Stats().CommWait)
		}
	}
	for _, s := range p.slots {
		if r := s.measured.replay; r != nil && r.NodeCount() != p.replayed().NodeCount()+1+2*2 {
			return 0, fmt.Errorf("the graph that measures has %d nodes, the other %d", r.NodeCount(), p.replayed().NodeCount())
		}
	}
	return p.Stats().CommWait, nil
}
