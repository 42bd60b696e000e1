package simulate

import (
	"container/heap"
	"context"
	"math"
)

// crowd plays steps where machines have fewer processors than ranks. What a rank has to
// compute then does not say when it is through: ranks that compute have equal shares of
// the processors, and those that wait have none. So machines are followed event by
// event, always that one whose next event is the earliest: nothing that happens
// elsewhere, such as the end of a collective, can come before it.
type crowd struct {
	*player
	wake    float64
	boxes   []*crowded
	of      []*crowded // the machine of each rank
	queue   crowds
	started []int       // by collective: ranks that have
	begins  [][]float64 // by collective and rank: when it has
}

// crowded is a machine and its ranks. Times are microseconds.
type crowded struct {
	processors float64
	ranks      []*actor
	now, next  float64 // how far it is played; its next event
	place      int     // in the queue
}

// actor is a rank in the middle of a step.
type actor struct {
	rank  int
	begin float64 // when it begins the step
	part  int     // of the program
	event int     // of the part: the one that it is at
	doing doing
	left  float64 // of a processor's time, until it has computed
	owed  float64 // what a processor has done for collectives and has not delayed yet
	woken int     // the label that waking is summed under
}

// doing is what an actor does.
type doing uint8

const (
	toBegin  doing = iota // it is elsewhere until begin
	computes              // has a processor, or a share of one
	wakes                 // likewise, after a wait
	waits                 // for the collective of its event
	moves                 // goes from one event to the next
	ended
)

func newCrowd(p *player, wake float64) *crowd {
	c := &crowd{player: p, wake: wake, of: make([]*crowded, len(p.clock)), started: make([]int, len(p.collectives))}
	for range p.collectives {
		c.begins = append(c.begins, make([]float64, len(p.clock)))
	}
	rank := 0
	for _, b := range p.group.boxes {
		m := &crowded{processors: b.processors}
		for range b.ranks {
			m.ranks = append(m.ranks, &actor{rank: rank})
			c.of[rank] = m
			rank++
		}
		c.boxes = append(c.boxes, m)
	}
	return c
}

// step is player.step.
func (c *crowd) step(ctx context.Context, number int) error {
	c.draw(number)
	c.steps = append(c.steps, split{exposed: make([]float64, len(c.labels))})
	sum := &c.steps[number]
	c.group.messages, c.group.bytes = 0, 0
	clear(c.started)
	c.queue = c.queue[:0]
	for _, m := range c.boxes {
		m.now = math.Inf(1)
		for _, a := range m.ranks {
			*a = actor{rank: a.rank, begin: c.clock[a.rank]}
			m.now = min(m.now, a.begin)
		}
		m.next = m.now
		heap.Push(&c.queue, m)
	}
	for n := 0; !math.IsInf(c.queue[0].next, 1); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m := c.queue[0]
		c.advance(m, sum)
		c.until(m)
		heap.Fix(&c.queue, m.place)
	}
	c.total(sum)
	return nil
}

// advance plays a machine up to its next event, and that.
func (c *crowd) advance(m *crowded, sum *split) {
	rate, passed := m.rate(), m.next-m.now
	m.now = m.next
	for _, a := range m.ranks {
		switch a.doing {
		case computes:
			sum.compute += passed
		case wakes:
			sum.exposed[a.woken] += passed
		default:
			continue
		}
		if a.left -= rate * passed; a.left < rounding {
			a.left = 0
		}
	}
	for _, a := range m.ranks {
		if c.through(m, a) {
			c.goOn(m, a, sum)
		}
	}
}

// rounding is the time of a processor that is none, in microseconds.
const rounding = 1e-7

// rate is the share of a processor that each rank has which computes.
func (m *crowded) rate() float64 {
	n := 0
	for _, a := range m.ranks {
		if a.doing == computes || a.doing == wakes {
			n++
		}
	}
	return min(1, m.processors/float64(max(1, n)))
}

// through says whether an actor's event is over.
func (c *crowd) through(m *crowded, a *actor) bool {
	switch a.doing {
	case toBegin:
		return a.begin <= m.now
	case computes, wakes:
		return a.left == 0
	case waits:
		return c.over(a) <= m.now
	}
	return false
}

// over is when the collective that an actor waits for is over on its rank; for ever, if
// not all have started it.
func (c *crowd) over(a *actor) float64 {
	k := c.parts[a.part][a.event].Collective
	if c.started[k] < len(c.clock) {
		return math.Inf(1)
	}
	return c.runs[k][a.rank].end
}

// goOn has an actor whose event is over go on to one that takes time.
func (c *crowd) goOn(m *crowded, a *actor, sum *split) {
	switch a.doing {
	case computes, wakes:
		a.event++
	case waits:
		e := c.parts[a.part][a.event]
		a.woken = c.label[e.Collective]
		c.wait(a.rank, e.Collective, sum)
		if a.left, a.doing = c.wake, wakes; a.left > 0 {
			return
		}
		a.event++
	}
	a.doing = moves
	for ; a.part < len(c.parts); a.part, a.event = a.part+1, 0 {
		for ; a.event < len(c.parts[a.part]); a.event++ {
			e := c.parts[a.part][a.event]
			if e.Kind == Compute {
				if a.left = e.US*c.ratio[a.rank] + a.owed; a.left > 0 {
					a.owed, a.doing = 0, computes
					return
				}
				continue
			}
			if c.over(a) > m.now {
				a.owed = 0 // is done while it waits
				a.doing, c.clock[a.rank] = waits, m.now
				return
			}
		}
		if a.part < len(c.collectives) {
			c.begins[a.part][a.rank] = m.now
			c.begun(a.part)
		}
	}
	a.doing, c.clock[a.rank] = ended, m.now
}

// begun counts a rank that has started collective k. With the last of them it is known
// when it ends, and what it takes from computing.
func (c *crowd) begun(k int) {
	if c.started[k]++; c.started[k] < len(c.clock) {
		return
	}
	c.start(k, c.begins[k])
	for _, m := range c.boxes {
		for _, a := range m.ranks {
			work := c.runs[k][a.rank].work / c.group.stretch[c.host[a.rank]]
			switch a.doing {
			case computes, wakes:
				a.left += work
			case waits:
				if c.parts[a.part][a.event].Collective != k {
					a.owed += work
				}
			default:
				a.owed += work
			}
		}
		c.until(m)
		heap.Fix(&c.queue, m.place)
	}
}

// until finds a machine's next event.
func (c *crowd) until(m *crowded) {
	rate := m.rate()
	m.next = math.Inf(1)
	for _, a := range m.ranks {
		switch a.doing {
		case toBegin:
			m.next = min(m.next, a.begin)
		case computes, wakes:
			m.next = min(m.next, m.now+a.left/rate)
		case waits:
			m.next = min(m.next, max(m.now, c.over(a)))
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
