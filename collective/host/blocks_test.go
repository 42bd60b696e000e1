package host_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// uneven are hosts of ranks, a letter for each rank, and the blocks into which they are cut.
var uneven = map[string]string{
	"aaabbbcc": "abcdefgh", "aaaaaabb": "aabbccdd", "abbc": "abcd", "abab": "abcd", "aaab": "abcd", "aabbaa": "aabbcc", "aaaab": "aaaab",
	"aabba": "aabbc", "aaabb": "abcde", "aab": "aab", // the last block is short
	"aaaa": "aaaa", "aabb": "aabb", "aaaabbbb": "aaaabbbb", "abcd": "abcd", "aaaaa": "aaaaa", "a": "a", // as they were
}

// TestAligned: hosts are cut into the largest aligned blocks of a power of two ranks.
func TestAligned(t *testing.T) {
	for hosts, want := range uneven {
		letters := map[string]byte{}
		var got []byte
		for _, name := range host.AlignedHosts(strings.Split(hosts, "")) {
			if letters[name] == 0 {
				letters[name] = byte('a' + len(letters))
			}
			got = append(got, letters[name])
		}
		if string(got) != want {
			t.Errorf("%s is cut into %s, want %s", hosts, got, want)
		}
	}
}

// TestTreeAligned wants the bits of the tree over all ranks from hosts that are cut, by
// doubling and by slices.
func TestTreeAligned(t *testing.T) {
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for hosts := range uneven {
		n := len(hosts)
		for _, length := range []int{800, 20_000} {
			want := treeOfHosts(make([]string, n), length, input) // on one host
			var wg sync.WaitGroup
			for r, c := range group(t, n, host.Config{Hosts: strings.Split(hosts, ""), Aligned: true, ListenIP: "127.0.0.1"}) {
				wg.Go(func() {
					defer shut(t, c)
					x := make([]float32, length)
					for i := range x {
						x[i] = input(r, i)
					}
					err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(x)})
					if err != nil || !slices.Equal(x, want) {
						t.Errorf("%s, %d numbers, rank %d: %v, the bits of the tree: %v", hosts, length, r, err, slices.Equal(x, want))
					}
				})
			}
			wg.Wait()
		}
	}
}
