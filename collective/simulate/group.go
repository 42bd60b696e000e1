package simulate

import (
	"slices"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// group is the ranks of a cluster between two collectives: their processors and links,
// and what these cost. Times are microseconds from the beginning of the simulation.
//
// A collective is played list by list: hosts of one class have the same list, which
// goes on until it waits for messages that not all have sent. Every time follows from
// those of the messages before, so it does not matter which list goes on first.
type group struct {
	ranks   []int // on each host
	size    int   // ranks of all
	rounds  [][]schedule.Round
	stretch []float64 // by host: how much longer a processor takes, since ranks share it
	shared  []bool    // by host: what is done for collectives delays computing
	oneBox  bool      // hosts share machines: their links are the work of processors, too
	crowded bool      // processors are shared out by a crowd, which is told their work
	boxes   []box

	// The leader of each host, and the others of it, who do all the same: when they are
	// through what they have done, and what of that was the work of a processor.
	lead, rest actors

	out     []float64 // by host: when its link has nothing more to send
	in      []inlink  // by host
	fans    map[fanKey]*fan
	whole   [][]flight        // by round, counted from the last, and host: the message that comes to it
	inRound []int             // hosts in each of these rounds
	slices  map[cutting][]int // the slice of each host
	grid    grid
	plans   map[planKey][]*class

	messages, bytes int64 // sent between hosts

	meetings []schedule.Meeting // of apart
	others   []int
}

// cutting is how many bytes are cut into slices, and how many of them are never parted.
type cutting struct{ bytes, unit int }

// box is a machine: the ranks of its hosts share its processors.
type box struct {
	ranks      int
	processors float64
}

// crowdedBy says whether so many groups have machines with fewer processors than ranks.
func (g *group) crowdedBy(groups int) bool {
	return slices.ContainsFunc(g.boxes, func(b box) bool { return b.processors < float64(b.ranks*groups) })
}

// actors are some of the ranks of each host.
type actors struct {
	clock, work []float64
	beside      []float64 // work that is done while links carry something
}

func newActors(n int) actors {
	return actors{make([]float64, n), make([]float64, n), make([]float64, n)}
}

// spend keeps the actor of host h busy.
func (a *actors) spend(h int, us float64) {
	a.clock[h] += us
	a.work[h] += us
}

// flight is when what is sent begins to enter the receiver's link, and when all of it
// would have, if that had nothing else to carry; the latency is not in it.
type flight struct{ begin, end float64 }

func newGroup(c Cluster) *group {
	hosts := len(c.Ranks)
	g := &group{ranks: c.Ranks, lead: newActors(hosts), rest: newActors(hosts), stretch: make([]float64, hosts), shared: make([]bool, hosts),
		out: make([]float64, hosts), in: make([]inlink, hosts), fans: map[fanKey]*fan{},
		slices: map[cutting][]int{}, grid: grid{Grid: schedule.GridOf(hosts), ranks: c.Ranks}, plans: map[planKey][]*class{}}
	together := min(max(1, c.Together), hosts)
	g.oneBox = together > 1 && !c.Wired
	for h := range hosts {
		g.size += c.Ranks[h]
		g.rounds = append(g.rounds, schedule.Rounds(h, hosts))
		for i := range g.rounds[h] {
			if i == len(g.inRound) {
				g.inRound, g.whole = append(g.inRound, 0), append(g.whole, make([]flight, hosts))
			}
			g.inRound[i]++
		}
	}
	for h := 0; h < hosts; h += together {
		last := min(h+together, hosts)
		ranks := 0
		for _, n := range c.Ranks[h:last] {
			ranks += n
		}
		b := box{ranks, float64(ranks)}
		if c.Cores > 0 {
			b.processors = max(float64(c.Cores)-c.Others, least*float64(c.Cores))
		}
		g.boxes = append(g.boxes, b)
		for o := h; o < last; o++ {
			g.shared[o] = c.Cores == 0 || ranks >= c.Cores
			g.stretch[o] = max(1, float64(ranks)/b.processors)
		}
	}
	return g
}

// least is the share of its processors that a machine has left for ranks, whatever
// others take.
const least = 0.05

// prices are cost.Costs in microseconds, also of a byte.
type prices struct{ latency, message, perByte, reduce, busy, busyPerByte float64 }

func pricesOf(c cost.Costs) prices {
	return prices{c.Latency.Value, c.Message.Value, c.PerByte.Value / 1e3, c.Reduce.Value / 1e3, c.Busy.Value, c.BusyPerByte.Value / 1e3}
}

// tariff is what a collective costs.
type tariff struct{ within, between prices }

func tariffOf(m cost.Model) tariff { return tariff{pricesOf(m.Within), pricesOf(m.Between)} }

// class is hosts with the same list. The leader's is followed; others catch up with it
// in barriers.
type class struct {
	hosts      []int
	call       schedule.Call // the leader's
	lead, rest []schedule.Step
	at, restAt int // next steps
}

type planKey struct {
	kind  collective.Kind
	bytes int
}

// plan is the classes of a collective, of whose vector of float32 every rank has its
// own in memory from Alloc. The root of a broadcast is rank 0.
func (g *group) plan(k planKey) []*class {
	if p, ok := g.plans[k]; ok {
		return p
	}
	type key struct {
		locals, rounds int
		root           bool
	}
	var p []*class
	known := map[key]*class{}
	for h, locals := range g.ranks {
		at := key{locals, len(g.rounds[h]), k.kind == collective.Broadcast && h == 0}
		c := known[at]
		if c == nil {
			c = &class{call: g.call(k, h)}
			known[at] = c
			c.lead = c.call.Rest(c.call.Open(nil))
			if locals > 1 {
				last := c.call
				last.Local, last.Root = locals-1, false
				c.rest = last.Rest(last.Open(nil))
			}
			p = append(p, c)
		}
		c.hosts = append(c.hosts, h)
	}
	g.plans[k] = p
	return p
}

func (g *group) call(k planKey, h int) schedule.Call {
	c := schedule.Call{Kind: k.kind, Bytes: k.bytes, Elem: 4, Wide: 4, Ranks: g.size, Hosts: len(g.ranks), Locals: g.ranks[h],
		Rounds: len(g.rounds[h]), All: true, Some: true}
	if k.kind == collective.Broadcast {
		c.Root, c.RootHost = h == 0, h == 0
	}
	if g.grid.Worth(k.bytes) {
		c.Width = g.grid.Width
	}
	if c.Hosts == 1 && k.bytes <= schedule.Small { // is staged all the same
		c.Outside, c.All, c.Some = true, false, false
	}
	return c
}

// play carries out a collective that leaders and others begin when their clocks say.
func (g *group) play(k planKey, t tariff) {
	for _, w := range [][]float64{g.lead.work, g.rest.work, g.lead.beside, g.rest.beside} {
		clear(w)
	}
	clear(g.fans)
	if g.size == 1 {
		return
	}
	for h := range g.in {
		g.in[h].forget()
	}
	plan := g.plan(k)
	for _, c := range plan {
		c.at, c.restAt = 0, 0
	}
	for moved := true; moved; {
		moved = false
		for _, c := range plan {
			for c.at < len(c.lead) && g.step(c, c.lead[c.at], t) {
				c.at++
				moved = true
			}
		}
	}
	for _, c := range plan {
		if c.at < len(c.lead) {
			panic("simulate: a collective waits for what nobody sends: the schedule is wrong")
		}
		g.catchUp(c, t)
	}
}

// catchUp has the ranks that do not lead do what they do until their next barrier.
func (g *group) catchUp(c *class, t tariff) {
	for ; c.restAt < len(c.rest); c.restAt++ {
		s := c.rest[c.restAt]
		if s.Do == schedule.Meet || s.Do == schedule.Barrier {
			c.restAt++
			return
		}
		for _, h := range c.hosts {
			g.rest.spend(h, g.stretch[h]*localTime(s, t.within))
		}
	}
}

// localTime is what a step within a host takes who does it.
func localTime(s schedule.Step, p prices) float64 {
	switch s.Do {
	case schedule.Stage, schedule.Copy, schedule.Pack:
		return float64(s.Bytes) * p.perByte
	case schedule.Reduce:
		return float64(s.Bytes) * p.reduce
	}
	return 0
}

// step does a step of the leaders of a class, if nothing is missing for it.
func (g *group) step(c *class, s schedule.Step, t tariff) bool {
	switch s.Do {
	case schedule.Meet, schedule.Barrier:
		g.barrier(c, t)
	case schedule.Ask, schedule.Send:
		g.send(c, s, t.between)
	case schedule.Agree, schedule.Wait:
		return g.wait(c, s, t.between)
	case schedule.Combine:
		for _, h := range c.hosts {
			g.lead.spend(h, g.stretch[h]*float64(g.combined(h, c.call, s))*t.between.reduce)
		}
	default:
		for _, h := range c.hosts {
			g.lead.spend(h, g.stretch[h]*localTime(s, t.within))
		}
	}
	return true
}

// barrier is that of the ranks of each host.
func (g *group) barrier(c *class, t tariff) {
	locals := c.call.Locals
	if locals == 1 {
		return
	}
	g.catchUp(c, t)
	for _, h := range c.hosts {
		all := max(g.lead.clock[h], g.rest.clock[h]) + g.stretch[h]*(t.within.latency+float64(locals-1)*t.within.message)
		g.lead.clock[h], g.rest.clock[h] = all, all
	}
}

// combined is how many bytes the leader of h reads to combine.
func (g *group) combined(h int, c schedule.Call, s schedule.Step) int {
	switch s.What {
	case schedule.Whole:
		return 2 * s.Bytes
	case schedule.RowAddends, schedule.ColumnAddends:
		return g.grid.combined(h, s.What, g.grid.bounds(c, s))
	}
	return len(g.ranks) * g.slice(h, c, s)
}

// slice is the bytes of a chunk that are host h's.
func (g *group) slice(h int, c schedule.Call, s schedule.Step) int {
	n := s.Hi - s.Lo
	if c.Kind == collective.ReduceScatter || c.Kind == collective.AllGather {
		return n * g.ranks[h]
	}
	of := cutting{n, c.Elem}
	if c.Kind == collective.Broadcast {
		of.unit = 1
	}
	cuts, ok := g.slices[of]
	if !ok {
		unit := of.unit
		for o := range g.ranks {
			lo, hi := schedule.Share(n/unit, len(g.ranks), o)
			cuts = append(cuts, (hi-lo)*unit)
		}
		g.slices[of] = slices.Clip(cuts)
	}
	return cuts[h]
}
