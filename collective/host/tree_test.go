package host_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/collective/schedule"
)

// TestTree wants the sum of the balanced binary tree, bit for bit, whatever
// the hosts: so ranks can continue a tree of virtual shards.
func TestTree(t *testing.T) {
	const length = 3000
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for _, n := range []int{2, 4, 8} {
		want := make([]float32, length)
		for i := range want {
			sums := make([]float32, n)
			for r := range sums {
				sums[r] = input(r, i)
			}
			for ; len(sums) > 1; sums = sums[:len(sums)/2] {
				for k := range len(sums) / 2 {
					sums[k] = sums[2*k] + sums[2*k+1]
				}
			}
			want[i] = sums[0]
		}
		for _, hosts := range []string{"1", "2", "4", "8"} {
			for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter} {
				for _, l := range []int{800, length} {
					l = l / n * n
					treeOf(t, kind, hosts, n, l, func(int) bool { return false }, input, want)
				}
			}
		}
	}
}

// vectorOf is memory from Alloc, if the rank is one that takes it, or ordinary memory.
func vectorOf(c collective.Comm, length int, allocs func(rank int) bool) ([]float32, error) {
	mem, err := c.Alloc(4 * length) // all ranks do
	if err != nil || !allocs(c.Rank()) {
		return make([]float32, length), err
	}
	return unsafe.Slice((*float32)(mem.Ptr), length), nil
}

func treeOf(t *testing.T, kind collective.Kind, hosts string, n, length int, allocs func(rank int) bool, input func(r, i int) float32, want []float32) {
	t.Helper()
	var wg sync.WaitGroup
	for r, c := range group(t, n, host.Config{Hosts: pretend(hosts, n), ListenIP: "127.0.0.1"}) {
		wg.Go(func() {
			defer shut(t, c)
			x, err := vectorOf(c, length, allocs)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range x {
				x[i] = input(r, i)
			}
			if err := collective.Do(t.Context(), c, collective.Request{Kind: kind, Op: collective.Sum, Vec: collective.VecOf(x)}); err != nil {
				t.Error(err)
			}
			lo, hi := 0, length
			if kind == collective.ReduceScatter {
				lo, hi = r*length/n, (r+1)*length/n
			}
			if !slices.Equal(x[lo:hi], want[lo:hi]) {
				t.Errorf("%s of %d on %d ranks, %s hosts: rank %d has other bits than the tree", kind, length, n, hosts, r)
			}
		})
	}
	wg.Wait()
}

// TestTreeOfHosts wants the bits of the tree over the hosts of the trees over their
// ranks, by doubling and by slices, where neither number is a power of two.
func TestTreeOfHosts(t *testing.T) {
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for _, test := range []struct {
		ranks int
		hosts string
	}{{3, "3"}, {5, "5"}, {6, "6"}, {7, "7"}, {7, "3"}, {9, "5i"}, {12, "12"}, {17, "17"}} {
		hosts := pretend(test.hosts, test.ranks)
		for _, length := range []int{1, 800, 9000, 20_000} { // of which three are small enough to be doubled, one of them posted
			if length > 10_000 && test.ranks > 9 && testing.Short() {
				continue
			}
			want := treeOfHosts(hosts, length, input)
			for _, allocs := range []bool{false, true} {
				treeOf(t, collective.AllReduce, test.hosts, test.ranks, length, func(int) bool { return allocs }, input, want)
			}
		}
	}
}

// TestNaNBits: where several ranks bring NaNs of their own, all end with the same one, by
// whatever way.
func TestNaNBits(t *testing.T) {
	for _, hosts := range []string{"1", "2", "5", "5g"} {
		for _, op := range []collective.Op{collective.Sum, collective.Max, collective.Min} {
			for _, length := range []int{5, 4000, 20_000} { // reduced by each, by doubling, by slices
				got := make([][]uint32, 5)
				var wg sync.WaitGroup
				for r, c := range group(t, 5, as(hosts, host.Config{Hosts: pretend(hosts, 5), ListenIP: "127.0.0.1"})) {
					wg.Go(func() {
						defer shut(t, c)
						x := make([]float32, length)
						for i := range x {
							if x[i] = float32(r); (i>>r)&1 == 0 {
								x[i] = math.Float32frombits(0x7fc00001 + uint32(r))
							}
						}
						if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: op, Vec: collective.VecOf(x)}); err != nil {
							t.Error(err)
						}
						for _, y := range x {
							got[r] = append(got[r], math.Float32bits(y))
						}
					})
				}
				wg.Wait()
				for r := range got {
					if !slices.Equal(got[r], got[0]) {
						t.Errorf("%s of %d on %s hosts: rank %d has other bits than rank 0", op, length, hosts, r)
					}
				}
			}
		}
	}
}

// TestTreeOfGrid wants the same of so many hosts that their leaders stand in a grid, the last
// row of which is short.
func TestTreeOfGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: a group of 29 hosts; TestGridBits and TestGridShapes run in smaller grids")
	}
	const hosts = 29
	if g := schedule.GridOf(hosts); g.Width == 0 || hosts%g.Width == 0 {
		t.Fatalf("%d hosts stand in %+v, want one with a short row", hosts, g)
	}
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter} {
		const length = hosts * 700 // more than is doubled
		want := treeOfHosts(pretend("29", hosts), length, input)
		treeOf(t, kind, "29", hosts, length, func(int) bool { return false }, input, want)
	}
}

// TestTreeInPlace wants the same bits whatever way a host takes: vectors reduced where
// they lie, in several chunks, and next to it a host that copies them.
func TestTreeInPlace(t *testing.T) {
	const period = 5000
	var sines [5][period]float32
	for rank := range sines {
		for i := range sines[rank] {
			sines[rank][i] = float32(math.Sin(float64(rank*7919 + i)))
		}
	}
	input := func(rank, i int) float32 { return sines[rank][i%period] }
	for _, ranks := range []int{2, 4, 5} {
		for _, hosts := range []string{"2", "4"} {
			if strings.Compare(hosts, fmt.Sprint(ranks)) > 0 || testing.Short() && ranks == 4 {
				continue
			}
			const length = 1_250_003 // three chunks, the last one short, and no equal slices
			want := treeOfHosts(pretend(hosts, ranks), period, input)
			for len(want) < length {
				want = append(want, want[:min(len(want), length-len(want))]...)
			}
			for name, allocs := range map[string]func(rank int) bool{
				"all": func(int) bool { return true }, "none": func(int) bool { return false },
				"first": func(r int) bool { return r == 0 }, "not first": func(r int) bool { return r > 0 }, "last": func(r int) bool { return r == ranks-1 },
			} {
				t.Logf("%d ranks on %s hosts, from Alloc: %s", ranks, hosts, name)
				treeOf(t, collective.AllReduce, hosts, ranks, length, allocs, input, want)
			}
		}
	}
}

// treeOfHosts is the sum that ranks on these hosts must have.
func treeOfHosts(hosts []string, length int, input func(r, i int) float32) []float32 {
	want := make([]float32, length)
	for i := range want {
		own := map[string][]float32{}
		var order []string
		for r, h := range hosts {
			if own[h] == nil {
				order = append(order, h)
			}
			own[h] = append(own[h], input(r, i))
		}
		var sums []float32
		for _, h := range order {
			sums = append(sums, tree(own[h]))
		}
		want[i] = tree(sums)
	}
	return want
}

// tree is the sum of x as package reduce has it, one by one.
func tree(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	cut := 1 << (bits.Len(uint(len(x)-1)) - 1)
	return tree(x[:cut]) + tree(x[cut:])
}
