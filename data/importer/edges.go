package importer

import "math"

// leastShare is the share of the training split that a bucket has at least: a
// program is compiled for each, and a batch waits until its bucket can fill it.
const leastShare = 0.05

// edges are the lengths of batches: at most n, the last of them longest, such that
// the training split, each sentence padded to its bucket's length, has the fewest
// tokens. Every bucket has leastShare of it. The choice is exact, by dynamic
// programming over the lengths that occur.
func edges(lengths []int, longest, n int) []int {
	count := make([]int, longest+1) // sentences of at most so many tokens
	for _, l := range lengths {
		count[l]++
	}
	for l := 1; l <= longest; l++ {
		count[l] += count[l-1]
	}
	least := int(math.Ceil(leastShare * float64(len(lengths))))
	const none = math.MaxInt
	// best[k][e] is the least cost of sentences up to length e in k+1 buckets that end
	// with e; from[k][e] is the edge before.
	best, from := make([][]int, n), make([][]int, n)
	for k := range n {
		best[k], from[k] = make([]int, longest+1), make([]int, longest+1)
		for e := range best[k] {
			best[k][e] = none
			if k == 0 && count[e] >= least {
				best[k][e] = count[e] * e
			}
			for before := 1; k > 0 && before < e; before++ {
				if best[k-1][before] == none || count[e]-count[before] < least {
					continue
				}
				if cost := best[k-1][before] + (count[e]-count[before])*e; cost < best[k][e] {
					best[k][e], from[k][e] = cost, before
				}
			}
		}
	}
	k := 0
	for i := range n {
		if best[i][longest] < best[k][longest] {
			k = i
		}
	}
	all := make([]int, k+1)
	for e := longest; k >= 0; k-- {
		all[k] = e
		e = from[k][e]
	}
	return all
}
