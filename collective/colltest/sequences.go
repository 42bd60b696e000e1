package colltest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
)

// program runs long random sequences with ranks out of step.
func (f Factory) program(t *testing.T) {
	steps := 100
	if f.brief() {
		steps = 30
	}
	for _, n := range f.quickSizes() {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			comms := f.group(t, n)
			shelves := f.shelves(t, comms, vectorBytes(collective.F64, n*1000))
			each(comms, func(c collective.Comm) error { return randomProgram(c, shelves[c.Rank()], steps) }).ok(t)
		})
	}
}

func randomProgram(c collective.Comm, s shelf, steps int) error {
	rng := rand.New(rand.NewPCG(1, 2)) // the same on every rank
	own := rand.New(rand.NewPCG(3, uint64(c.Rank())))
	reqs := requests(c.Size())
	for step := range steps {
		req := reqs[rng.IntN(len(reqs))]
		length := rng.IntN(1000)
		if own.IntN(10) == 0 {
			time.Sleep(time.Duration(own.IntN(300)) * time.Microsecond)
		}
		if req.Kind == collective.Barrier {
			if err := do(c, req); err != nil {
				return err
			}
			continue
		}
		if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
			length *= c.Size()
		}
		p := []place{ordinary, allocated, mixed}[rng.IntN(3)]
		if err := programStep(c, s.at(p, c.Rank()), req, length, step); err != nil {
			return fmt.Errorf("step %d, %s, %s memory: %w", step, req, p, err)
		}
	}
	return nil
}

func programStep(c collective.Comm, b Buffer, req collective.Request, length, seed int) error {
	in := make([][]float64, c.Size())
	for r := range in {
		in[r] = make([]float64, length)
		for i := range in[r] {
			in[r][i] = whole(req.Vec.Type, seed, r, i)
		}
	}
	v := newVector(b, req.Vec.Type, in[c.Rank()])
	req.Vec = v.vec
	if err := do(c, req); err != nil {
		return err
	}
	got, err := v.values()
	if err != nil {
		return err
	}
	want := expected(req, in)[c.Rank()]
	e := req.Vec.Type.Epsilon()
	return compare(got, want, func(i int) float64 {
		if req.Op == collective.Mean {
			return e * abs(want[i])
		}
		return 0
	})
}

// inFlight starts many collectives before it waits for any.
func (f Factory) inFlight(t *testing.T) {
	const count, length = 100, 257
	for _, n := range []int{1, min(2, f.MaxRanks), min(5, f.MaxRanks)} {
		comms := f.group(t, n)
		var mu sync.Mutex // of buffers that outlive do
		var keep []Buffer
		each(comms, func(c collective.Comm) error {
			var pending []collective.Pending
			var vectors []vector
			for k := range count {
				values := make([]float64, length)
				for i := range values {
					values[i] = float64(k + c.Rank())
				}
				b, err := f.Memory(c, vectorBytes(collective.F64, length))
				if err != nil {
					return err
				}
				mu.Lock()
				keep = append(keep, b)
				mu.Unlock()
				v := newVector(b, collective.F64, values)
				vectors = append(vectors, v)
				pending = append(pending, c.Start(collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: v.vec}))
			}
			for k := count - 1; k >= 0; k-- { // the last first
				if err := wait(pending[k]); err != nil {
					return err
				}
				got, err := vectors[k].values()
				if err != nil {
					return err
				}
				if want := float64(k*n + n*(n-1)/2); got[0] != want || got[length-1] != want {
					return fmt.Errorf("collective %d: got %v and %v, want %v", k, got[0], got[length-1], want)
				}
			}
			return nil
		}).ok(t)
	}
}
