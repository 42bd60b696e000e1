package host_test

import (
	"bytes"
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
	for _, test := range []struct{ ranks, hosts, width int }{{3, 3, 2}, {5, 5, 2}, {6, 6, 4}, {7, 7, 4}, {9, 9, 4}, {8, 5, 4}} {
		if testing.Short() && test.ranks != 7 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks on %d hosts in rows of %d", test.ranks, test.hosts, test.width), func(t *testing.T) {
			cfg := host.Config{Hosts: pretend(fmt.Sprint(test.hosts), test.ranks), ListenIP: "127.0.0.1"}
			want := reducedBits(t, test.ranks, cfg)
			got := reducedBits(t, test.ranks, host.InGrid(cfg, test.width))
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("vector %d has other bits in a grid", i)
				}
			}
		})
	}
}

// reducedBits is what a group makes of some vectors, which all ranks must agree on.
func reducedBits(t *testing.T, n int, cfg host.Config) [][]byte {
	t.Helper()
	all := make([][][]byte, n)
	var wg sync.WaitGroup
	for r, c := range group(t, n, cfg) {
		wg.Go(func() {
			defer shut(t, c)
			var err error
			if all[r], err = reduceSome(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for r := range all {
		for i := range all[0] {
			if !bytes.Equal(all[r][i], all[0][i]) {
				t.Fatalf("vector %d: ranks 0 and %d differ", i, r)
			}
		}
	}
	return all[0]
}

func reduceSome(t *testing.T, c collective.Comm) (out [][]byte, err error) {
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	for _, test := range []struct {
		typ   collective.DType
		op    collective.Op
		elems int
		alloc bool
	}{
		{collective.F32, collective.Mean, 16<<10 + 1, true},
		{collective.F32, collective.Max, 16<<10 + 1, false},
		{collective.F32, collective.Mean, 33_003, false},
		{collective.F32, collective.Sum, 600_007, true}, // two chunks
		{collective.BF16, collective.Mean, 40_001, true},
		{collective.BF16, collective.Mean, 600_007, false},
	} {
		n := test.elems * test.typ.Size()
		memory := collective.VecOf(make([]byte, n))
		if test.alloc {
			if memory, err = c.Alloc(n); err != nil {
				return nil, err
			}
		}
		b := memory.Bytes()
		for i := range b { // of bfloat16 and of float32 a value between 2 and 8, or minus that
			b[i] = byte(rng.Uint32())
			if i%test.typ.Size() == test.typ.Size()-1 {
				b[i] = b[i]&0x80 | 0x40
			}
		}
		if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: test.op, Vec: memory.As(test.typ)}); err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(b))
	}
	return out, nil
}
