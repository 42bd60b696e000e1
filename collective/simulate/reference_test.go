package simulate

import (
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// letter is a message of one host to another.
type letter struct {
	what  schedule.What
	at    int // of its chunk
	bytes int
	flight
}

// slow plays a collective host by host and message by message: nothing is grouped, and
// every message lies in a queue of its connection until it is waited for. It is the
// meaning of group.play.
type slow struct {
	t         *testing.T
	g         *group // sizes of slices, and stretch; its clocks are not used
	tariff    tariff
	mail      map[[2]int][]letter // from, to
	lead      []float64
	rest      []float64
	out       []float64
	in        [][]interval // all that each link has carried, in the order of waits
	messages  int64
	bytes     int64
	leadSteps [][]schedule.Step
	restSteps [][]schedule.Step
}

func (s *slow) play(k planKey) {
	hosts := len(s.g.ranks)
	s.mail = map[[2]int][]letter{}
	s.leadSteps, s.restSteps = make([][]schedule.Step, hosts), make([][]schedule.Step, hosts)
	for h := range hosts {
		c := s.g.call(k, h)
		s.leadSteps[h] = c.Rest(c.Open(nil))
		if c.Local, c.Root = c.Locals-1, false; c.Local > 0 {
			s.restSteps[h] = c.Rest(c.Open(nil))
		}
	}
	for moved := true; moved; {
		moved = false
		for h := hosts - 1; h >= 0; h-- { // another order than the other's
			for len(s.leadSteps[h]) > 0 && s.step(h, s.g.call(k, h), s.leadSteps[h][0]) {
				s.leadSteps[h] = s.leadSteps[h][1:]
				moved = true
			}
		}
	}
	for h := range hosts {
		s.others(h)
		if len(s.leadSteps[h]) > 0 || len(s.restSteps[h]) > 0 {
			s.t.Fatalf("host %d is stuck at %+v", h, s.leadSteps[h])
		}
	}
	for way, left := range s.mail {
		if len(left) > 0 {
			s.t.Fatalf("nobody has waited for %d messages, from and to %v", len(left), way)
		}
	}
}

// others go to their next barrier.
func (s *slow) others(h int) {
	for len(s.restSteps[h]) > 0 {
		step := s.restSteps[h][0]
		s.restSteps[h] = s.restSteps[h][1:]
		if step.Do == schedule.Meet || step.Do == schedule.Barrier {
			return
		}
		s.rest[h] += s.g.stretch[h] * localTime(step, s.tariff.within)
	}
}

// receivers are what a leader sends in a step: bytes for each host.
func (s *slow) sends(h int, c schedule.Call, step schedule.Step) []int {
	to := make([]int, len(s.g.ranks))
	if step.What == schedule.Whole {
		for _, o := range s.g.rounds[h][step.Round].To {
			to[o] = step.Bytes + schedule.HeaderBytes
		}
		return to
	}
	for o := range to {
		switch {
		case o == h:
		case step.What >= schedule.RowAddends:
			to[o] = s.inGrid(c, step, h, o)
		case step.Do == schedule.Ask:
			to[o] = schedule.HeaderBytes
		case step.What == schedule.Addends || step.What == schedule.Pieces:
			to[o] = s.g.slice(o, c, step)
		case step.What == schedule.Rest && o == 0:
		default:
			to[o] = s.g.slice(h, c, step)
		}
	}
	return to
}

func (s *slow) step(h int, c schedule.Call, step schedule.Step) bool {
	p := s.tariff.between
	f := s.g.stretch[h]
	wire, late := p.perByte, p.latency
	if s.g.oneBox {
		wire, late = wire*f, late*f
	}
	switch step.Do {
	case schedule.Meet, schedule.Barrier:
		if n := c.Locals; n > 1 {
			s.others(h)
			all := max(s.lead[h], s.rest[h]) + f*(s.tariff.within.latency+float64(n-1)*s.tariff.within.message)
			s.lead[h], s.rest[h] = all, all
		}
	case schedule.Ask, schedule.Send:
		var n, bytes int
		to := s.sends(h, c, step)
		for _, b := range to {
			if b > 0 {
				n, bytes = n+1, bytes+b
			}
		}
		if n == 0 {
			break
		}
		now, each, carry := s.lead[h], p.message*f, float64(bytes)*wire
		fl := flight{begin: max(now+each, s.out[h])}
		fl.end = max(fl.begin+carry, now+float64(n)*each+carry/float64(n))
		for o, b := range to {
			if b > 0 {
				s.mail[[2]int{h, o}] = append(s.mail[[2]int{h, o}], letter{step.What, step.Lo, b, fl})
				s.messages, s.bytes = s.messages+1, s.bytes+int64(b)
			}
		}
		s.lead[h] += float64(n) * each
		s.out[h] = fl.end
	case schedule.Agree, schedule.Wait:
		return s.wait(h, c, step, wire, late)
	case schedule.Combine:
		s.lead[h] += f * float64(s.g.combined(h, c, step)) * p.reduce
	default:
		s.lead[h] += f * localTime(step, s.tariff.within)
	}
	return true
}

// inGrid is how many bytes a host sends to another in a step of a grid.
func (s *slow) inGrid(c schedule.Call, step schedule.Step, from, to int) (n int) {
	g := &s.g.grid
	b := g.bounds(c, step)
	inRow := g.RowOf(from) == g.RowOf(to)
	holds := func(h, i int) bool { return g.Holder(g.RowOf(h), i) == h }
	reduces := func(h, i int) bool { return holds(h, i) && i%g.Rows() == g.RowOf(h) }
	for i := range g.Slices() {
		sent := false
		switch step.What {
		case schedule.RowAddends:
			sent = inRow && holds(to, i)
		case schedule.RowResults:
			sent = inRow && holds(from, i)
		case schedule.ColumnAddends:
			sent = !inRow && holds(from, i) && reduces(to, i)
		case schedule.ColumnResults:
			sent = !inRow && holds(to, i) && reduces(from, i)
		}
		if sent {
			n += b.slice(i)
		}
	}
	return n
}

// wait takes one message of each host that sends one in the step that is waited for,
// as the receiver knows from the schedule.
func (s *slow) wait(h int, c schedule.Call, step schedule.Step, wire, late float64) bool {
	var from, want []int
	for o := range s.g.ranks {
		n := 0
		switch {
		case step.What == schedule.Whole:
			if s.g.rounds[h][step.Round].From == o {
				n = step.Bytes + schedule.HeaderBytes
			}
		case o == h:
		case step.What >= schedule.RowAddends:
			n = s.inGrid(c, step, o, h)
		case step.Do == schedule.Agree:
			n = schedule.HeaderBytes
		case step.What == schedule.Addends, step.What == schedule.Pieces && o == 0:
			n = s.g.slice(h, c, step)
		case step.What == schedule.Results, step.What == schedule.Rest:
			n = s.g.slice(o, c, step)
		}
		if n > 0 {
			from, want = append(from, o), append(want, n)
		}
	}
	if len(from) == 0 {
		return true
	}
	for _, o := range from {
		if len(s.mail[[2]int{o, h}]) == 0 {
			return false
		}
	}
	all, begin, end := 0, math.Inf(1), 0.0
	for i, o := range from {
		way := [2]int{o, h}
		m := s.mail[way][0]
		s.mail[way] = s.mail[way][1:]
		if m.what != step.What || m.bytes != want[i] || m.what != schedule.Whole && m.at != step.Lo {
			s.t.Fatalf("host %d waits in %+v for %d bytes of host %d, and gets %+v", h, step, want[i], o, m)
		}
		all, begin, end = all+m.bytes, min(begin, m.begin), max(end, m.end)
	}
	s.lead[h] = max(s.lead[h], max(end, s.carry(h, begin, float64(all)*wire))+late)
	return true
}

// carry takes what is free of a link after begin, piece by piece.
func (s *slow) carry(h int, begin, us float64) float64 {
	at := begin
	var pieces []interval
	for us > 0 {
		next, busy := math.Inf(1), false
		for _, b := range s.in[h] {
			if b.begin <= at && at < b.end {
				at, busy = b.end, true
			} else if b.begin > at {
				next = min(next, b.begin)
			}
		}
		if busy {
			continue
		}
		n := min(us, next-at)
		pieces = append(pieces, interval{at, at + n})
		us -= n
		at += n
	}
	s.in[h] = append(s.in[h], pieces...)
	return at
}

// prices with which no two things take the same time.
func somePrices() cost.Model {
	v := func(x float64) cost.Interval { return cost.Interval{Value: x} }
	return cost.Model{
		Within:  cost.Costs{Latency: v(1.3), Message: v(0.17), PerByte: v(0.21), Reduce: v(0.33)},
		Between: cost.Costs{Latency: v(17), Message: v(2.9), PerByte: v(0.83), Reduce: v(0.41)},
	}
}

// TestGrouped: collectives in which hosts of one kind, and all that they send at once,
// are one event take as long as message by message, whenever hosts begin.
func TestGrouped(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []Cluster{
		{Ranks: Hosts(2, 1)}, {Ranks: Hosts(5, 1)}, {Ranks: Hosts(7, 1), Together: 7, Cores: 2}, {Ranks: Hosts(16, 1)}, {Ranks: Hosts(40, 1)},
		{Ranks: Hosts(31, 1), Together: 8, Cores: 4}, // in a grid whose last row is short, as 40 and 24 hosts in full ones
		{Ranks: uneven(29)}, {Ranks: uneven(53)},
		{Ranks: Hosts(4, 2)}, {Ranks: Hosts(17, 8)}, {Ranks: Hosts(24, 8)}, {Ranks: []int{1, 3, 2, 3, 1}}, {Ranks: Hosts(12, 6), Cores: 4},
	} {
		c.Costs = somePrices()
		for kind := collective.Barrier; kind <= collective.Broadcast; kind++ {
			for _, bytes := range []int{4, 300, 8 << 10, 20_000, 64 << 10, 64<<10 + 4, 300_000, 5 << 20} {
				g, hosts := newGroup(c), len(c.Ranks)
				s := &slow{t: t, g: newGroup(c), tariff: tariffOf(c.Costs), lead: make([]float64, hosts), rest: make([]float64, hosts),
					out: make([]float64, hosts), in: make([][]interval, hosts)}
				for range 2 { // the second begins with links that are not free everywhere
					for h := range hosts {
						g.lead.clock[h] += 200 * rng.Float64()
						g.rest.clock[h] += 200 * rng.Float64()
					}
					copy(s.lead, g.lead.clock)
					copy(s.rest, g.rest.clock)
					k := planKey{kind, bytes}.whole(g.size)
					g.play(k, tariffOf(c.Costs))
					s.play(k)
				}
				for h := range hosts {
					if !near(g.lead.clock[h], s.lead[h]) || !near(g.rest.clock[h], s.rest[h]) {
						t.Errorf("%v %v of %d bytes: host %d ends at %v and %v, message by message at %v and %v", c.Ranks, kind, bytes, h,
							g.lead.clock[h], g.rest.clock[h], s.lead[h], s.rest[h])
					}
				}
				if g.messages != s.messages || g.bytes != s.bytes {
					t.Errorf("%v %v of %d bytes: %d messages of %d bytes, one by one %d of %d", c.Ranks, kind, bytes, g.messages, g.bytes, s.messages, s.bytes)
				}
			}
		}
	}
}

// TestSlicesOfEither: an all-reduce is cut between its elements, of which bounds are multiples
// of 64, and a broadcast between its bytes, also where as many bytes of the other kind were
// played before.
func TestSlicesOfEither(t *testing.T) {
	const bytes = 100_000
	want := map[collective.Kind][3]int{
		collective.AllReduce: {130 * 256, 130 * 256, 33_440}, // of 391 units of 64 elements
		collective.Broadcast: {521 * 64, 521 * 64, 33_312},   // of 1563 units of 64 bytes
	}
	for first, second := range map[collective.Kind]collective.Kind{collective.AllReduce: collective.Broadcast, collective.Broadcast: collective.AllReduce} {
		g := newGroup(Cluster{Ranks: Hosts(3, 1)})
		for _, kind := range []collective.Kind{first, second} {
			c := g.call(planKey{kind, bytes}, 0)
			var got [3]int
			for h := range got {
				got[h] = g.slice(h, c, schedule.Step{Hi: bytes})
			}
			if got != want[kind] {
				t.Errorf("%v of %d bytes, the first being %v, is cut into %v, want %v", kind, bytes, first, got, want[kind])
			}
		}
	}
}

// uneven are hosts of one to three ranks.
func uneven(hosts int) (ranks []int) {
	for h := range hosts {
		ranks = append(ranks, 1+h*h%3)
	}
	return ranks
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }
