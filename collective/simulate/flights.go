package simulate

import (
	"math"

	"ebtrain/collective/schedule"
)

// A fan is what all leaders send to all at the same step. It is one event for each
// host, not one for each pair of hosts: the slices of a sender travel at the same time
// and share its link, so all have arrived when the last one has; and since every host
// that receives anything receives from all that send, the last sender other than
// itself is all that it needs to know. Of 10⁴ hosts that is 10⁴ events in place of 10⁸.
// Hosts of a grid send to those of their line alone, a row or a column, and of a short row to
// others.
type fan struct {
	sent          int // hosts that have come to the step
	lines         []line
	each          []flight // by host, in columns of a grid with a short row
	bytes, slices int      // of the chunk, and how many slices are not empty
}

// line is when the flights of some hosts begin, with a minus, and end.
type line struct{ begin, end extremes }

// fanKey names a fan of the collective under way: a header, or a chunk, or a round
// (counted from the last).
type fanKey struct {
	what schedule.What
	at   int
}

// extremes are the largest value and the largest but one, and whose the largest is.
type extremes struct {
	first, second float64
	host          int
}

func noExtremes() extremes { return extremes{math.Inf(-1), math.Inf(-1), -1} }

func (e *extremes) add(h int, x float64) {
	switch {
	case x > e.first:
		e.first, e.second, e.host = x, e.first, h
	case x > e.second:
		e.second = x
	}
}

// but is the largest that is not h's.
func (e *extremes) but(h int) float64 {
	if h == e.host {
		return e.second
	}
	return e.first
}

func (g *group) key(h int, s schedule.Step) fanKey {
	if s.What == schedule.Whole {
		return fanKey{s.What, len(g.rounds[h]) - 1 - s.Round}
	}
	return fanKey{s.What, s.Lo}
}

func (g *group) fan(k fanKey) *fan {
	f := g.fans[k]
	if f == nil {
		f = &fan{lines: make([]line, g.lines(k.what))}
		for i := range f.lines {
			f.lines[i] = line{noExtremes(), noExtremes()}
		}
		if inColumns(k.what) && g.grid.short() {
			f.each = make([]flight, len(g.ranks))
		}
		g.fans[k] = f
	}
	return f
}

// send is a step of the leaders of a class that sends, also of headers.
func (g *group) send(c *class, s schedule.Step, p prices) {
	k := g.key(c.hosts[0], s)
	f := g.fan(k)
	for _, h := range c.hosts {
		f.sent++
		messages, bytes := g.outgoing(h, c.call, s)
		if messages == 0 {
			continue
		}
		fl := g.depart(h, messages, bytes, p)
		if l, ok := g.lineOf(h, s.What); ok && g.sendsIn(h, l, c.call, s) {
			f.lines[l].begin.add(h, -fl.begin) // the earliest is wanted
			f.lines[l].end.add(h, fl.end)
		}
		if f.each != nil {
			f.each[h] = fl
		}
		if s.What == schedule.Whole {
			for _, to := range g.rounds[h][s.Round].To {
				g.whole[k.at][to] = fl
			}
		}
	}
}

// depart sends so many messages, of bytes in all, from h at the same time. Its
// processor writes one after the other; the link carries them meanwhile.
func (g *group) depart(h, messages, bytes int, p prices) flight {
	g.messages += int64(messages)
	g.bytes += int64(bytes)
	each, carry := p.message*g.stretch[h], float64(bytes)*g.wire(h, p)
	n := float64(messages)
	fl := flight{begin: max(g.lead.clock[h]+each, g.out[h])}
	fl.end = max(fl.begin+carry, g.lead.clock[h]+n*each+carry/n)
	g.lead.spend(h, n*each)
	switch {
	case g.crowded:
		g.lead.work[h] += n * max(0, p.busy-each)
		copies := float64(bytes) * p.busyPerByte
		if g.oneBox {
			copies = max(copies, carry)
		}
		g.lead.beside[h] += copies
	case g.oneBox:
		g.lead.work[h] += carry
	}
	g.out[h] = fl.end
	return fl
}

// wire is the time of a byte on the link of h.
func (g *group) wire(h int, p prices) float64 {
	if g.oneBox {
		return p.perByte * g.stretch[h]
	}
	return p.perByte
}

// wait is a step of the leaders of a class that waits, also for headers. It is not
// done if somebody has not yet sent.
func (g *group) wait(c *class, s schedule.Step, p prices) bool {
	k := g.key(c.hosts[0], s)
	f := g.fan(k)
	if f.sent < g.senders(k) {
		return false
	}
	for _, h := range c.hosts {
		bytes := g.incoming(h, c.call, s)
		if bytes == 0 {
			continue
		}
		fl := flight{begin: math.Inf(1)}
		if l, ok := g.lineOf(h, s.What); ok {
			fl = flight{-f.lines[l].begin.but(h), f.lines[l].end.but(h)}
		}
		for _, o := range g.apart(h, c.call, s) {
			fl = flight{min(fl.begin, f.each[o].begin), max(fl.end, f.each[o].end)}
		}
		if s.What == schedule.Whole {
			fl = g.whole[k.at][h]
		}
		g.arrive(h, bytes, fl, p)
	}
	return true
}

// arrive has the leader of h wait for bytes. They come as fast as their senders send
// them, and no faster than the link of h carries them beside what else it carries.
func (g *group) arrive(h, bytes int, fl flight, p prices) {
	late := p.latency
	if g.oneBox {
		late *= g.stretch[h]
	}
	carried := g.in[h].carry(fl.begin, float64(bytes)*g.wire(h, p))
	g.lead.clock[h] = max(g.lead.clock[h], max(fl.end, carried)+late)
}

// senders is how many hosts come to the step that sends k.
func (g *group) senders(k fanKey) int {
	switch k.what {
	case schedule.Pieces:
		return 1
	case schedule.Whole:
		return g.inRound[k.at]
	}
	return len(g.ranks)
}

// outgoing is what the leader of h sends in s.
func (g *group) outgoing(h int, c schedule.Call, s schedule.Step) (messages, bytes int) {
	hosts := len(g.ranks)
	if s.Do == schedule.Ask {
		return hosts - 1, (hosts - 1) * schedule.HeaderBytes
	}
	if s.What == schedule.Whole {
		n := len(g.rounds[h][s.Round].To)
		return n, n * (s.Bytes + schedule.HeaderBytes)
	}
	if s.What >= schedule.RowAddends {
		return g.grid.outgoing(h, s.What, g.grid.bounds(c, s))
	}
	own := g.slice(h, c, s)
	switch s.What {
	case schedule.Addends, schedule.Pieces: // to every other host its slice
		total, full := g.chunk(c, s)
		if own > 0 {
			full--
		}
		return full, total - own
	}
	to := hosts - 1
	if s.What == schedule.Rest && h > 0 { // not to the root's host, which is the first
		to--
	}
	if own == 0 {
		return 0, 0
	}
	return to, to * own
}

// incoming is how many bytes the leader of h waits for in s.
func (g *group) incoming(h int, c schedule.Call, s schedule.Step) int {
	hosts := len(g.ranks)
	if s.Do == schedule.Agree {
		return (hosts - 1) * schedule.HeaderBytes
	}
	if s.What == schedule.Whole {
		return s.Bytes + schedule.HeaderBytes
	}
	if s.What >= schedule.RowAddends {
		return g.grid.incoming(h, s.What, g.grid.bounds(c, s))
	}
	own := g.slice(h, c, s)
	switch s.What {
	case schedule.Addends:
		return (hosts - 1) * own
	case schedule.Pieces:
		return own
	}
	total, _ := g.chunk(c, s)
	return total - own
}

// chunk is the bytes of all slices, and how many are not empty.
func (g *group) chunk(c schedule.Call, s schedule.Step) (bytes, full int) {
	f := g.fan(fanKey{s.What, s.Lo})
	if f.slices == 0 {
		for h := range g.ranks {
			if n := g.slice(h, c, s); n > 0 {
				f.bytes, f.slices = f.bytes+n, f.slices+1
			}
		}
	}
	return f.bytes, f.slices
}
