package host_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// TestGridBits: leaders that exchange in rows and columns, also of an uneven number of
// hosts of several ranks, get the bits that each gets who asks each; in memory from Alloc,
// where vectors are exchanged where they lie, and elsewhere; of chunks that are not full
// and slices that are empty. The last host of 9 in rows of 4 holds all columns of its row.
func TestGridBits(t *testing.T) {
	for _, test := range []struct {
		ranks int
		hosts string
		width int
	}{{3, "3", 2}, {5, "5", 2}, {6, "6", 4}, {7, "7", 4}, {9, "9", 4}, {8, "5", 4}, {11, "7i", 4}} {
		if testing.Short() && test.hosts != "7" {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks on %s hosts in rows of %d", test.ranks, test.hosts, test.width), func(t *testing.T) {
			cfg := host.Config{Hosts: pretend(test.hosts, test.ranks), ListenIP: "127.0.0.1"}
			sameInGrid(t, test.ranks, cfg, test.width, someExchanges)
		})
	}
}

// TestGridShapes: the same of hosts that have any ranks, and vectors of any length.
func TestGridShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	n := 12
	if testing.Short() {
		n = 3
	}
	for i := range n {
		hosts := 3 + rng.IntN(9)
		ranks := hosts + rng.IntN(5)
		cfg := host.Config{Hosts: make([]string, ranks), ListenIP: "127.0.0.1"}
		for r, h := range rng.Perm(ranks) {
			if h >= hosts {
				h = rng.IntN(hosts)
			}
			cfg.Hosts[r] = fmt.Sprint("node", h)
		}
		width := 2 << rng.IntN(2)
		if width >= hosts {
			width = 2
		}
		var tests []exchanged
		for range 8 {
			kinds := []collective.Kind{collective.AllReduce, collective.ReduceScatter, collective.AllGather}
			types := []collective.DType{collective.F32, collective.BF16}
			ops := []collective.Op{collective.Sum, collective.Mean, collective.Max}
			tests = append(tests, exchanged{kinds[rng.IntN(3)], types[rng.IntN(2)], ops[rng.IntN(3)], 1 + rng.IntN(50_000), rng.IntN(2) == 0})
		}
		if i%3 == 0 {
			cfg = host.Threaded(cfg)
		}
		t.Run(fmt.Sprintf("%d in rows of %d", i, width), func(t *testing.T) {
			t.Log(cfg.Hosts, tests)
			sameInGrid(t, ranks, cfg, width, tests)
		})
	}
}

// exchanged is a collective of a vector; of elements a rank has as many as any other, if it
// has a part.
type exchanged struct {
	kind  collective.Kind
	typ   collective.DType
	op    collective.Op
	elems int
	alloc bool
}

func (e exchanged) String() string {
	return fmt.Sprintf("%v of %d %v by %v, alloc %v", e.kind, e.elems, e.typ, e.op, e.alloc)
}

var someExchanges = []exchanged{
	{collective.AllReduce, collective.F32, collective.Mean, 16<<10 + 1, true},
	{collective.AllReduce, collective.F32, collective.Max, 16<<10 + 1, false},
	{collective.AllReduce, collective.F32, collective.Mean, 33_003, false},
	{collective.AllReduce, collective.F32, collective.Sum, 600_007, true},    // two chunks
	{collective.AllReduce, collective.F32, collective.Max, 1_100_003, false}, // three, in place where a rank is alone on its host
	{collective.AllReduce, collective.BF16, collective.Mean, 40_001, true},
	{collective.AllReduce, collective.BF16, collective.Mean, 600_007, false},
	{collective.ReduceScatter, collective.F32, collective.Sum, 1, false},
	{collective.ReduceScatter, collective.F32, collective.Mean, 600_007, true},
	{collective.ReduceScatter, collective.BF16, collective.Mean, 40_001, false},
	{collective.ReduceScatter, collective.F32, collective.Max, 999, true},
	{collective.AllGather, collective.F32, 0, 1, false},
	{collective.AllGather, collective.BF16, 0, 40_001, true},
	{collective.AllGather, collective.F32, 0, 600_007, false},
}

// sameInGrid wants of every collective the same bits on every rank, in a grid as without one.
func sameInGrid(t *testing.T, n int, cfg host.Config, width int, tests []exchanged) {
	t.Helper()
	want := exchangedBits(t, n, cfg, tests)
	got := exchangedBits(t, n, host.InGrid(cfg, width), tests)
	for r := range want {
		for i := range want[r] {
			if !bytes.Equal(got[r][i], want[r][i]) {
				t.Errorf("%v: rank %d has other bits in a grid", tests[i], r)
			}
			if tests[i].kind != collective.ReduceScatter && !bytes.Equal(got[r][i], got[0][i]) {
				t.Errorf("%v: ranks 0 and %d differ", tests[i], r)
			}
		}
	}
}

// exchangedBits is, by rank, what a group makes of vectors.
func exchangedBits(t *testing.T, n int, cfg host.Config, tests []exchanged) [][][]byte {
	t.Helper()
	all := make([][][]byte, n)
	var wg sync.WaitGroup
	for r, c := range group(t, n, cfg) {
		wg.Go(func() {
			defer shut(t, c)
			rng := rand.New(rand.NewPCG(1, uint64(r)))
			for _, test := range tests {
				b, err := test.do(t, c, rng)
				if err != nil {
					t.Errorf("%v: %v", test, err)
					return
				}
				all[r] = append(all[r], b)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// do carries it out on random numbers. It is what the rank may read then.
func (e exchanged) do(t *testing.T, c collective.Comm, rng *rand.Rand) ([]byte, error) {
	elems := e.elems
	if e.kind != collective.AllReduce {
		elems = (elems + c.Size() - 1) / c.Size() * c.Size()
	}
	n := elems * e.typ.Size()
	memory := collective.VecOf(make([]byte, n))
	if e.alloc {
		var err error
		if memory, err = c.Alloc(n); err != nil {
			return nil, err
		}
	}
	b := memory.Bytes()
	for i := range b { // of bfloat16 and of float32 a value between 2 and 8, or minus that
		b[i] = byte(rng.Uint32())
		if i%e.typ.Size() == e.typ.Size()-1 {
			b[i] = b[i]&0x80 | 0x40
		}
	}
	req := collective.Request{Kind: e.kind, Op: cmp.Or(e.op, collective.Sum), Vec: memory.As(e.typ)}
	if err := collective.Do(t.Context(), c, req); err != nil {
		return nil, err
	}
	if e.kind == collective.ReduceScatter {
		b = b[c.Rank()*n/c.Size():][:n/c.Size()]
	}
	return bytes.Clone(b), nil
}
