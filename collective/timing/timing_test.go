package timing

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/collective/processors"
)

// group is so many ranks of this process, as one host.
func group(t *testing.T, n int) []collective.Comm {
	t.Helper()
	exchanges := host.MemExchange(n)
	comms, errs := make([]collective.Comm, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			comms[r], errs[r] = host.New(t.Context(), host.Config{Rank: r, Size: n, Job: "timing", Key: []byte("0123456789abcdef0123456789abcdef"), Exchange: exchanges[r]})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range comms {
			wg.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	return comms
}

// measured is what the ranks measure of vectors of so many bytes.
func measured(t *testing.T, comms []collective.Comm, p Plan, bytes int) (sizes []int, reps []int, wrong int64) {
	t.Helper()
	sizes, reps = make([]int, len(comms)), make([]int, len(comms))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			mem, err := c.Alloc(bytes)
			if err != nil {
				t.Error(err)
				return
			}
			s, err := Measure(t.Context(), c, p, mem)
			if err != nil {
				t.Error(err)
				return
			}
			if !(s.Best > 0 && s.Best <= s.Median && s.Processor > 0) || !near(s.Bus, s.Algorithm*BusFactor(p.Kind, len(comms))) || !near(s.Algorithm, float64(bytes)/1e3/s.Best) {
				t.Errorf("%v of %d bytes: %+v", p.Kind, bytes, s)
			}
			mu.Lock()
			defer mu.Unlock()
			sizes[r], reps[r], wrong = s.Bytes, s.Reps, wrong+s.Wrong
		})
	}
	wg.Wait()
	return sizes, reps, wrong
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// TestMeasure: every collective of every type is measured as often on all ranks, and
// right; rank 0 says when it is enough.
func TestMeasure(t *testing.T) {
	for _, n := range []int{2, 3} {
		comms := group(t, n)
		for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter, collective.AllGather, collective.Broadcast} {
			for _, dtype := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
				p := Plan{Kind: kind, Op: collective.Sum, Type: dtype, Iters: 40, MaxTime: time.Minute}
				bytes := n * 40 * dtype.Size()
				sizes, reps, wrong := measured(t, comms, p, bytes)
				for r := range comms {
					if sizes[r] != bytes || reps[r] != reps[0] || reps[r]*innerOf(bytes) < p.Iters {
						t.Errorf("%v of %v: rank %d measured %d bytes %d times, rank 0 %d times", kind, dtype, r, sizes[r], reps[r], reps[0])
					}
				}
				if wrong != 0 {
					t.Errorf("%v of %v on %d ranks: %d elements are wrong", kind, dtype, n, wrong)
				}
			}
		}
	}
}

// TestMeasureAfterComputing: results are right, and as many, where ranks compute before
// each collective.
func TestMeasureAfterComputing(t *testing.T) {
	p := Plan{Kind: collective.AllReduce, Op: collective.Sum, Type: collective.F32, Iters: 40, MaxTime: time.Minute, Compute: 50 * time.Microsecond}
	_, reps, wrong := measured(t, group(t, 2), p, 256)
	if wrong != 0 || reps[0] != reps[1] || reps[0]*innerOf(256) < p.Iters {
		t.Errorf("%d elements are wrong, repetitions %v", wrong, reps)
	}
}

// behind is a rank that has what a broadcast brings so much later than its root has sent it.
type behind struct {
	collective.Comm
	by time.Duration
}

func (b behind) Do(ctx context.Context, req collective.Request) error {
	err := collective.Do(ctx, b.Comm, req)
	if req.Kind == collective.Broadcast && req.Vec.Type == collective.F32 {
		time.Sleep(b.by)
	}
	return err
}

// TestBroadcastTakesAllRanks: a broadcast takes until the last rank has it, also for the
// root, which has sent it long before.
func TestBroadcastTakesAllRanks(t *testing.T) {
	const by = 10 * time.Millisecond
	comms := group(t, 2)
	comms[1] = behind{comms[1], by}
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			mem, err := c.Alloc(2 << 20) // one at a time: of several the root waits for the next
			if err != nil {
				t.Error(err)
				return
			}
			s, err := Measure(t.Context(), c, Plan{Kind: collective.Broadcast, Type: collective.F32, Iters: 20, MaxTime: time.Minute}, mem)
			if least := float64(by.Microseconds()); err != nil || !(s.Best >= least) {
				t.Errorf("rank %d: %v us, %v, want %v at least, until rank 1 has it", r, s.Best, err, least)
			}
		})
	}
	wg.Wait()
}

// works is a group whose collectives keep a processor busy for so long.
type works struct {
	off
	each time.Duration
	n    *int
}

func (w works) Do(context.Context, collective.Request) error {
	*w.n++
	began := time.Now()
	for had := processors.Own(); processors.Own()-had < w.each || time.Since(began) < w.each; { // other threads of this process have processors, too
	}
	return nil
}

// TestComputingIsNoTime: a collective takes the time and the processor that it takes, and
// what ranks compute before it counts as neither.
func TestComputingIsNoTime(t *testing.T) {
	const inner, each, compute = 10, 200 * time.Microsecond, 10 * time.Millisecond
	n := 0
	b := &Batch{Comm: works{each: each, n: &n}, Inner: inner}
	began := time.Now()
	took, busy, err := b.batch(t.Context(), compute)
	all := time.Since(began)
	if err != nil || n != inner {
		t.Fatalf("%d collectives, %v, want %d", n, err, inner)
	}
	if b.before.mem == nil || b.before.mem[0] == 0 {
		t.Error("nothing was computed")
	}
	if took < inner*each || took > all-inner*compute {
		t.Errorf("%d collectives of %v took %v of %v with computing for %v before each", inner, each, took, all, compute)
	}
	if busy < inner*each || busy > inner*compute/2 {
		t.Errorf("%d collectives of %v had a processor for %v, with computing for %v before each", inner, each, busy, compute)
	}
	if took, _, err = b.batch(t.Context(), 0); err != nil || took < inner*each {
		t.Errorf("without computing: %v, %v", took, err)
	}
}

// TestMeasureEnds: when there is no time, there are the fewest repetitions.
func TestMeasureEnds(t *testing.T) {
	_, reps, _ := measured(t, group(t, 2), Plan{Kind: collective.AllReduce, Op: collective.Sum, Type: collective.F32, Iters: 1 << 30}, 64)
	for _, n := range reps {
		if n != Fewest {
			t.Errorf("%d repetitions in no time, want %d", n, Fewest)
		}
	}
}

// off is a group of two, as rank r sees it, in which collectives do nothing.
type off struct {
	collective.Comm
	rank int
}

func (o off) Rank() int { return o.rank }
func (o off) Size() int { return 2 }

// TestWrong: of a collective that has left the vectors as they were, all elements are
// wrong that it was to change, and each that is spoilt is counted.
func TestWrong(t *testing.T) {
	v := make([]float32, 32)
	b := &Batch{Comm: off{rank: 1}, Inner: 3, Req: collective.Request{Kind: collective.AllReduce, Vec: collective.VecOf(v)}}
	b.Fill()
	for i, x := range v {
		if float64(x) != value(1, i) {
			t.Fatalf("element %d is filled with %v, want %v", i, x, value(1, i))
		}
	}
	if n := b.wrong(); n != 32 {
		t.Errorf("%d elements of an all-reduce that did nothing are wrong, want all 32", n)
	}
	for i := range v { // a sum, doubled by each of the two that follow
		v[i] = float32(4 * (value(0, i) + value(1, i)))
	}
	if n := b.wrong(); n != 0 {
		t.Errorf("%d elements of a sum are wrong", n)
	}
	v[5], v[17] = float32(math.NaN()), v[17]*1.001
	if n := b.wrong(); n != 2 {
		t.Errorf("%d elements are wrong, want the two that were spoilt", n)
	}
	b.Req.Kind = collective.ReduceScatter // only this rank's half is looked at
	for i := range v {
		v[i] = float32(value(1, i) + 3*value(0, i))
	}
	v[3], v[20] = -1, -1
	if n := b.wrong(); n != 1 {
		t.Errorf("%d elements of this rank's part are wrong, want 1", n)
	}
}

func TestBusFactor(t *testing.T) {
	for _, tt := range []struct {
		kind collective.Kind
		n    int
		want float64
	}{{collective.AllReduce, 4, 1.5}, {collective.ReduceScatter, 4, 0.75}, {collective.AllGather, 2, 0.5}, {collective.Broadcast, 8, 1}} {
		if got := BusFactor(tt.kind, tt.n); got != tt.want {
			t.Errorf("%v of %d: %v, want %v", tt.kind, tt.n, got, tt.want)
		}
	}
}
