package simulate

import (
	"container/heap"
	"context"
	"math"
)

// crowd plays steps where machines have fewer processors than ranks. What a rank has to
// compute then does not say when it is through: all that want a processor have equal
// shares of them, be it to compute or for a collective, and those that wait have none.
// So machines are followed event by event, always that one whose next event is the
// earliest: nothing that happens elsewhere, such as the end of a collective, can come
// before it.
type crowd struct {
	wake, delay float64 // Cluster's
	sides       []*side
	boxes       []*crowded
	queue       crowds
}

// crowded is a machine and what runs on it. Times are microseconds.
type crowded struct {
	processors float64
	wakes      bool // who has waited finds caches as others left them
	actors     []*actor
	now, next  float64 // how far it is played; its next event
	place      int     // in the queue
}

// actor is a rank in the middle of a step, or what carries out its collectives.
type actor struct {
	side  *side
	rank  int
	step  int
	begin float64 // when it begins, or goes on
	part  int     // of the program
	event int     // of the part: the one that it is at
	doing doing
	left  float64 // of a processor's time
	woken int     // the label that waking is summed under
}

// doing is what an actor does.
type doing uint8

const (
	idle     doing = iota // nothing, until somebody has it do something
	toBegin               // it is elsewhere until begin
	computes              // has a processor, or a share of one
	wakes                 // likewise, after a wait
	serves                // likewise, for a collective that meanwhile goes no further
	carries               // likewise, while links carry what it is for
	waits                 // for the collective of its event
	lates                 // has waited, and is not woken before begin
)

// busy says whether an actor wants a processor.
func (a *actor) busy() bool { return a.doing >= computes && a.doing <= carries }

// newCrowd is of players of groups that are alike, on the same machines.
func newCrowd(players []*player, wake, delay float64) *crowd {
	c := &crowd{wake: wake, delay: delay}
	for _, b := range players[0].group.boxes {
		ranks := float64(b.ranks * len(players))
		m := &crowded{processors: min(b.processors, ranks), wakes: b.processors < ranks}
		c.boxes = append(c.boxes, m)
	}
	for _, p := range players {
		s := newSide(c, p)
		c.sides = append(c.sides, s)
		rank := 0
		for i, b := range p.group.boxes {
			for range b.ranks {
				s.join(rank, c.boxes[i])
				rank++
			}
		}
	}
	return c
}

// run plays so many steps.
func (c *crowd) run(ctx context.Context, steps int) error {
	for _, s := range c.sides {
		s.prepare(steps)
	}
	for _, m := range c.boxes {
		heap.Push(&c.queue, m)
	}
	for n := 0; !math.IsInf(c.queue[0].next, 1); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m := c.queue[0]
		c.advance(m)
		c.changed(m)
	}
	return nil
}

// changed finds a machine's next event, and its place among the machines.
func (c *crowd) changed(m *crowded) {
	m.until()
	heap.Fix(&c.queue, m.place)
}

// advance plays a machine up to its next event, and that.
func (c *crowd) advance(m *crowded) {
	rate, passed := m.rate(), m.next-m.now
	m.now = m.next
	for _, a := range m.actors {
		if !a.busy() {
			continue
		}
		a.side.processor += rate * passed
		switch a.doing {
		case computes:
			a.side.steps[a.step].compute += passed
		case wakes:
			a.side.steps[a.step].exposed[a.woken] += passed
		}
		if a.left -= rate * passed; a.left < rounding {
			a.left = 0
		}
	}
	for _, a := range m.actors {
		if a.through(m.now) {
			a.side.goOn(m, a)
		}
	}
}

// rounding is the time of a processor that is none, in microseconds.
const rounding = 1e-7

// rate is the share of a processor that each has who wants one.
func (m *crowded) rate() float64 {
	n := 0
	for _, a := range m.actors {
		if a.busy() {
			n++
		}
	}
	return min(1, m.processors/float64(max(1, n)))
}

// through says whether what an actor does is over.
func (a *actor) through(now float64) bool {
	switch {
	case a.doing == toBegin, a.doing == lates:
		return a.begin <= now
	case a.doing == waits:
		return a.side.over(a) <= now
	}
	return a.busy() && a.left == 0
}

// until finds a machine's next event.
func (m *crowded) until() {
	rate := m.rate()
	m.next = math.Inf(1)
	for _, a := range m.actors {
		switch {
		case a.doing == toBegin, a.doing == lates:
			m.next = min(m.next, max(m.now, a.begin))
		case a.doing == waits:
			m.next = min(m.next, max(m.now, a.side.over(a)))
		case a.busy():
			m.next = min(m.next, m.now+a.left/rate)
		}
	}
}

// crowds are a heap, the machine with the earliest event first.
type crowds []*crowded

func (q crowds) Len() int           { return len(q) }
func (q crowds) Less(i, j int) bool { return q[i].next < q[j].next }
func (q crowds) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *crowds) Push(x any) {
	m := x.(*crowded)
	m.place = len(*q)
	*q = append(*q, m)
}
func (q *crowds) Pop() any { panic("simulate: no machine leaves the queue") }
