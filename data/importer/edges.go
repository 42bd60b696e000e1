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
	count := upTo(lengths, longest)
	least := int(math.Ceil(leastShare * float64(len(lengths))))
	first := make(cuts, longest+1) // of one bucket
	for e := range first {
		first[e].cost = noCuts
		if count[e] >= least {
			first[e].cost = count[e] * e
		}
	}
	all := []cuts{first} // all[k] are those of k+1 buckets
	best := 0
	for k := 1; k < n; k++ {
		all = append(all, all[k-1].further(count, least))
		if all[k][longest].cost < all[best][longest].cost {
			best = k
		}
	}
	chosen := make([]int, best+1)
	for k, e := best, longest; k >= 0; k-- {
		chosen[k] = e
		e = all[k][e].before
	}
	return chosen
}

// upTo says for each length, 0 to longest, how many sentences are of at most so many tokens.
func upTo(lengths []int, longest int) []int {
	count := make([]int, longest+1)
	for _, l := range lengths {
		count[l]++
	}
	for l := 1; l <= longest; l++ {
		count[l] += count[l-1]
	}
	return count
}

// cuts has for each length e the best way to cut the sentences up to e into a number of
// buckets, of which the last ends with e: the tokens that they then have, and the edge
// before e.
type cuts []struct{ cost, before int }

// noCuts is the cost where there are too few sentences for as many buckets.
const noCuts = math.MaxInt

// further are the cuts into one bucket more, which has at least least sentences. count is
// upTo's.
func (c cuts) further(count []int, least int) cuts {
	next := make(cuts, len(c))
	for e := range next {
		next[e].cost = noCuts
		for before := 1; before < e; before++ {
			fresh := count[e] - count[before]
			if c[before].cost == noCuts || fresh < least {
				continue
			}
			if cost := c[before].cost + fresh*e; cost < next[e].cost {
				next[e].cost, next[e].before = cost, before
			}
		}
	}
	return next
}
