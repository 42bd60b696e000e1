package schedule

import "math/bits"

// Round is one of a host's in recursive doubling: it sends what it has to some hosts,
// and adds what it gets from one.
type Round struct {
	To   []int
	From int
	Less bool // From's sum is that of lower hosts: it comes first
	Leaf bool // From's sum is its own alone, so it waits for nobody before it sends
}

// Rounds are those of a host. After them each has the sum of all, in the order of the
// tree of package reduce, which cuts after the largest power of two below their
// number: first the hosts on either side of the cut have the sum of their side, then
// each gets that of the other side. There may be fewer hosts on the right; then each
// of them sends to several.
//
// Who has come through its rounds has heard, if not directly, from all hosts: each
// sends only what those before it have sent to it.
func Rounds(host, hosts int) []Round { return rounds(host, 0, hosts) }

// rounds are those of a host among lo to hi (exclusive).
func rounds(host, lo, hi int) []Round {
	n := hi - lo
	if n == 1 {
		return nil
	}
	left := 1 << (bits.Len(uint(n-1)) - 1)
	right, cut := n-left, lo+left
	if host < cut {
		at := host - lo
		r := Round{From: cut + at%right, Leaf: right == 1}
		if at < right {
			r.To = []int{cut + at}
		}
		return append(rounds(host, lo, cut), r)
	}
	at := host - cut
	r := Round{From: lo + at, Less: true, Leaf: left == 1}
	for to := lo + at; to < cut; to += right {
		r.To = append(r.To, to)
	}
	return append(rounds(host, cut, hi), r)
}

// Direct is the size of a message up to which whoever carries out the collective
// reads it itself, when it has sent its own: every connection has room for two of
// them that nobody has read, and there are no more, so that is no cycle of waiting.
// Larger ones are posted before anything is sent, and received while it is.
const Direct = 8<<10 + HeaderBytes

// double is how leaders exchange n bytes that are small, or none: in as many rounds
// as there are levels of the tree, where direct exchange sends a header and two slices
// from each to each. Headers travel in front of each message; nothing is left to
// compare or combine of empty vectors.
func (c Call) double(steps []Step, n int) []Step {
	wide := n
	if n > 0 {
		wide = n / c.Elem * c.Wide
	}
	steps = append(steps, Step{Do: Pack, Hi: n, Bytes: wide})
	for i := range c.Rounds {
		s := Step{What: Whole, Hi: n, Bytes: wide, Round: i, Last: i == c.Rounds-1}
		for _, do := range []Verb{Post, Send, Wait, Combine} {
			if do == Post && HeaderBytes+wide <= Direct || do == Combine && n == 0 {
				continue
			}
			s.Do = do
			steps = append(steps, s)
		}
	}
	return steps
}
