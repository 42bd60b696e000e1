package cpu

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// lean is a backend whose programs compute again what they need not keep.
type lean struct {
	exec.Backend
	keep bool  // do not, after all
	peak int64 // bytes of the last program
}

func (l *lean) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	o.Remat = !l.keep
	p, err := l.Backend.Compile(g, o)
	if err == nil {
		l.peak = p.Stats().PeakBytes
	}
	return p, err
}

// TestRematHasTheSameBits on random graphs with collectives, two ranks.
func TestRematHasTheSameBits(t *testing.T) {
	bes := [2]exec.Backend{open(t, Config{Threads: 1}), open(t, Config{Threads: 2})}
	run := func(g *graph.Graph, remat bool) [2][]float64 {
		next := 0
		return runRandom(t, g, func() exec.Backend {
			next++
			if remat {
				return &lean{Backend: bes[next-1]}
			}
			return bes[next-1]
		})
	}
	for seed := range uint64(60) {
		g, err := randomStep(rand.New(rand.NewPCG(seed, 4)))
		if err != nil {
			t.Fatal(err)
		}
		got, want := run(g, true), run(g, false)
		for r := range want {
			for i, w := range want[r] {
				if got[r][i] != w {
					t.Fatalf("seed %d, rank %d, number %d: got %v, want %v", seed, r, i, got[r][i], w)
				}
			}
		}
	}
}

// TestRematStep trains two steps of BiDVL with and without.
func TestRematStep(t *testing.T) {
	for _, threads := range []int{1, 2} {
		be := open(t, Config{Threads: threads})
		less := &lean{Backend: be}
		got, err := train(less, nil, 24)
		if err != nil {
			t.Fatal(err)
		}
		plain := &lean{Backend: be, keep: true}
		want, err := train(plain, nil, 24)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want {
			if !bytes.Equal(got[name].Bytes(), want[name].Bytes()) {
				t.Errorf("%d threads: %s has other bits", threads, name)
			}
		}
		t.Logf("peak %d bytes, without %d", less.peak, plain.peak)
		if less.peak >= plain.peak*9/10 {
			t.Errorf("the peak is %d bytes, without %d", less.peak, plain.peak)
		}
	}
}
