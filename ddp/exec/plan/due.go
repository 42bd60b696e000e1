package plan

import "slices"

// times is when units are due: where their nodes stand in the graph. The sums of
// gradients stand behind all of the backward pass; so what is made for a collective
// alone, and what pointwise work is done for that, is due at once, when what it is made
// of is there, and the collective travels while others are computed.
func (s *scheduler) times() []int {
	f := feeders{scheduler: s, feeds: make([]answer, len(s.units)), waits: make([]answer, len(s.units))}
	due := make([]int, len(s.units))
	for i, u := range s.units {
		if due[i] = u.index; f.isFeeder(i) && f.isMade(i) {
			due[i] = atOnce
		}
	}
	return due
}

// atOnce is before all that has its place in the graph.
const atOnce = -1

// feeders are the units that are made for collectives alone. What has been found out
// of each is kept.
type feeders struct {
	*scheduler
	feeds, waits []answer // by unit
}

type answer uint8

const (
	unknown answer = iota
	no
	yes
)

func (a *answer) of(ask func() bool) bool {
	if *a == unknown {
		*a = no
		if ask() {
			*a = yes
		}
	}
	return *a == yes
}

// isFeeder says whether i goes into collectives and nothing else, itself or by pointwise
// work. What is behind a product or a convolution is a backward pass, and stays.
func (f *feeders) isFeeder(i int) bool {
	return f.feeds[i].of(func() bool {
		pointwise := isPointwise(f.units[i].op)
		other := func(j int) bool { return !f.isStart(j) && !(pointwise && f.isFeeder(j)) }
		return len(f.users[i]) > 0 && !f.isStart(i) && !slices.ContainsFunc(f.users[i], other)
	})
}

// isMade says whether feeder i is made of anything but variables, which are there from
// the beginning: what is made of them alone would lie about.
func (f *feeders) isMade(i int) bool {
	return f.waits[i].of(func() bool {
		return slices.ContainsFunc(f.deps[i], func(d int) bool { return !f.isFeeder(d) || f.isMade(d) })
	})
}

func isPointwise(op any) bool {
	switch op.(type) {
	case *Fused, Copy, Fill:
		return true
	}
	return false
}
