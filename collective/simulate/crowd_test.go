package simulate

import (
	"context"
	"math"
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// TestCrowdByHand: steps on fewer processors than ranks, as one counts them on paper.
func TestCrowdByHand(t *testing.T) {
	meet := []Event{event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}
	work := func(us float64) []Event { return []Event{event(Compute, 0, us, 0)} }
	adds := cost.Model{Within: cost.Costs{Reduce: cost.Interval{Value: 1}}}
	sends := cost.Model{Between: cost.Costs{Message: cost.Interval{Value: 20}, Latency: cost.Interval{Value: 100}, Busy: cost.Interval{Value: 30}}}
	copies := cost.Model{Between: cost.Costs{PerByte: cost.Interval{Value: 0.1}, BusyPerByte: cost.Interval{Value: 1}}}
	overlap := []Event{event(Start, 0, 0, 1<<20), event(Compute, 0, 1000, 0), event(Wait, 0, 0, 0)}
	for name, tt := range map[string]struct {
		cluster Cluster
		events  []Event
		want    float64
	}{
		"four on two":         {Cluster{Ranks: []int{4}, Cores: 2}, slices.Concat(work(100), meet), 200},
		"three on two":        {Cluster{Ranks: []int{3}, Cores: 2}, slices.Concat(work(100), meet), 150},
		"four hosts":          {Cluster{Ranks: Hosts(4, 1), Cores: 2, Together: 4, Wired: true}, slices.Concat(work(100), meet), 200},
		"all taken by others": {Cluster{Ranks: []int{2}, Cores: 2, Others: 5}, slices.Concat(work(100), meet), 200 / (2 * least)},
		// Two hosts of one machine each. A broadcast is a header of either, and all of the vector
		// from the root: so one line has 200 us of work, beside 10 of computing on its processor,
		// and is 10 us late. That of the other has 100, of two processors beside four times 10: it
		// is through before, and 15 late, and so are all.
		"the latest": {Cluster{Ranks: []int{1, 4}, Cores: 2, Costs: cost.Model{Between: cost.Costs{Message: cost.Interval{Value: 100}}}},
			[]Event{{Kind: Start, What: collective.Broadcast, Bytes: 4}, event(Compute, 0, 10, 0), {Kind: Wait}}, 200 + 15},
		"beside others": {Cluster{Ranks: []int{2}, Cores: 2, Others: 0.5}, slices.Concat(work(150), meet), 200},
		// All are through at 200, and whoever is the last has waited for nobody. The others are
		// awake at 220, with 50 us to do, and it has 40 left, until 300; then three share two.
		"waking": {Cluster{Ranks: []int{4}, Cores: 2, Wake: 10}, slices.Concat(work(100), meet, work(50)), 300 + 3*10/2.0},
		// Three are late until 210, and meanwhile one processor is idle: the last has one.
		"late":            {Cluster{Ranks: []int{4}, Cores: 2, Delay: 10}, slices.Concat(work(100), meet, work(50)), 300 + 10/2.0},
		"late and waking": {Cluster{Ranks: []int{4}, Cores: 2, Delay: 10, Wake: 10}, slices.Concat(work(100), meet, work(50)), 300 + (10+3*10)/2.0},
		// Both read all of a vector of 1 MB, on the processor that also computes for both.
		"overlap": {Cluster{Ranks: []int{2}, Cores: 1, Costs: adds}, overlap, 2*1000 + 2*1e-3*(1<<20)},
		// One after the other, each for what it has to read itself.
		"three": {Cluster{Ranks: []int{2}, Cores: 1, Costs: adds}, []Event{event(Start, 0, 0, 1<<20), event(Wait, 0, 0, 0),
			event(Start, 1, 0, 1<<18), event(Wait, 1, 0, 0), event(Start, 2, 0, 1<<19), event(Wait, 2, 0, 0)}, 2 * 1e-3 * (1<<20 + 1<<18 + 1<<19)},
		"side by side": {Cluster{Ranks: []int{2}, Cores: 2, Beside: 2}, slices.Concat(work(100), meet), 200},
		// Two rounds of a message, 240 us with a processor each. Of one processor the four want
		// 60 each, have them after 240 in place of 60, and so are 180 late.
		"messages": {Cluster{Ranks: Hosts(4, 1), Cores: 1, Together: 4, Wired: true, Costs: sends}, meet, 240 + 180},
		"messages of three": {Cluster{Ranks: Hosts(4, 1), Cores: 1, Together: 4, Wired: true, Costs: sends}, []Event{event(Start, 0, 0, 4), event(Wait, 0, 0, 0),
			event(Start, 1, 0, 4), event(Wait, 1, 0, 0), event(Start, 2, 0, 4), event(Wait, 2, 0, 0)}, 3 * (240 + 180)},
		// A header and a half of the vector there, another half back, from either: the links
		// take a tenth of what the processor takes.
		"bytes": {Cluster{Ranks: Hosts(2, 1), Cores: 1, Together: 2, Wired: true, Costs: copies},
			[]Event{event(Start, 0, 0, 1<<20), event(Wait, 0, 0, 0)}, 2 * 1e-3 * (1<<20 + schedule.HeaderBytes)},
		// Through memory the links, too, are the work of the processor.
		"bytes in memory": {Cluster{Ranks: Hosts(2, 1), Cores: 1, Together: 2, Costs: cost.Model{Between: cost.Costs{PerByte: cost.Interval{Value: 1}, BusyPerByte: cost.Interval{Value: 0.1}}}},
			[]Event{event(Start, 0, 0, 1<<20), event(Wait, 0, 0, 0)}, 2 * 1e-3 * (1<<20 + schedule.HeaderBytes)},
		"bytes that overlap": {Cluster{Ranks: Hosts(2, 1), Cores: 1, Together: 2, Wired: true, Costs: copies},
			overlap, 2*1000 + 2*1e-3*(1<<20+schedule.HeaderBytes)},
		"enough": {Cluster{Ranks: Hosts(2, 1), Cores: 2, Together: 2, Wired: true, Costs: sends, Wake: 50, Delay: 50}, meet, 120},
	} {
		r, err := Run(t.Context(), tt.cluster, Step{tt.events}, Noise{}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(r.Median-tt.want) <= 1e-3) {
			t.Errorf("%s: %v us, by hand %v", name, r.Median, tt.want)
		}
	}
}

// TestCrowdCounts: of four ranks that compute for 100 and 50 us on two processors three
// are woken, for 10 us of one. Being late needs none, and each needs what a collective does.
func TestCrowdCounts(t *testing.T) {
	meet := []Event{event(Compute, 0, 100, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0), event(Compute, 0, 50, 0)}
	for _, delay := range []float64{0, 7} {
		r, err := Run(t.Context(), Cluster{Ranks: []int{4}, Cores: 2, Wake: 10, Delay: delay}, Step{meet}, Noise{}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(r.Processor-(150+3*10/4.0)) <= 1e-3) || r.Woken != 0.75 {
			t.Errorf("late by %v: %v us of a processor and %v wakings, want 157.5 and 0.75", delay, r.Processor, r.Woken)
		}
	}
	c := Cluster{Ranks: Hosts(4, 1), Cores: 1, Together: 4, Wired: true, Beside: 2, Costs: cost.Model{Between: cost.Costs{Busy: cost.Interval{Value: 30}}}}
	r, err := Run(t.Context(), c, Step{meet}, Noise{}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := 150 + 2*30.0; !(math.Abs(r.Processor-want) <= 1e-3) { // two rounds of a message
		t.Errorf("with messages %v us of a processor, want %v", r.Processor, want)
	}
	// The fifth waits for the four on a machine of its own, which has a processor for it.
	r, err = Run(t.Context(), Cluster{Ranks: []int{4, 1}, Cores: 2, Wake: 10}, Step{meet}, Noise{}, 1, 1)
	if want := 150 + 3*10/5.0; err != nil || !(math.Abs(r.Processor-want) <= 1e-3) || r.Woken != 3/5.0 {
		t.Errorf("beside a machine with enough processors: %v, %v us of a processor and %v wakings, want %v and 0.6", err, r.Processor, r.Woken, want)
	}
	two := []Event{event(Compute, 0, 100, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0), event(Start, 1, 0, 4), event(Wait, 1, 0, 0)}
	r, err = Run(t.Context(), c, Step{two}, Noise{}, 3, 1)
	if n := int64(2 * 4 * 2); err != nil || r.Messages != n || r.Bytes != n*(4+schedule.HeaderBytes) { // collectives, hosts and rounds
		t.Errorf("in a step are %d messages of %d bytes, %v, want %d of %d each", r.Messages, r.Bytes, err, n, 4+schedule.HeaderBytes)
	}
	c.Cores, c.Beside = 4, 1
	if r, err = Run(t.Context(), c, Step{meet}, Noise{}, 3, 1); err != nil || r.Processor != 0 || r.Woken != 0 {
		t.Errorf("no crowd: %v, %v us and %v wakings, want 0", err, r.Processor, r.Woken)
	}
}

// TestCrowdExposed: that a rank is late and wakes is time for which the collective is exposed,
// and so is what bytes take of processors behind its last message.
func TestCrowdExposed(t *testing.T) {
	meet := []Event{event(Compute, 0, 100, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}
	copies := cost.Model{Between: cost.Costs{PerByte: cost.Interval{Value: 0.1}, BusyPerByte: cost.Interval{Value: 1}}}
	for name, tt := range map[string]struct {
		cluster Cluster
		events  []Event
		compute float64
		exposed float64
	}{ // of four ranks three have waited, and wake on two processors
		"waking":          {Cluster{Ranks: []int{4}, Cores: 2, Wake: 10}, meet, 200, 15 * 3 / 4.0},
		"late":            {Cluster{Ranks: []int{4}, Cores: 2, Delay: 10}, meet, 200, 10 * 3 / 4.0},
		"late and waking": {Cluster{Ranks: []int{4}, Cores: 2, Delay: 10, Wake: 10}, meet, 200, (10 + 15) * 3 / 4.0},
		"bytes": {Cluster{Ranks: Hosts(2, 1), Cores: 1, Together: 2, Wired: true, Costs: copies}, []Event{event(Start, 0, 0, 1<<20), event(Wait, 0, 0, 0)},
			0, 2 * 1e-3 * (1<<20 + schedule.HeaderBytes)},
	} {
		r, err := Run(t.Context(), tt.cluster, Step{tt.events}, Noise{}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(r.ExposedUS()-tt.exposed) <= 1e-3) || !(math.Abs(r.Compute-tt.compute) <= 1e-3) || r.Slowest != 0 || r.Exposed[0].Label != "bucket" {
			t.Errorf("%s: computing takes %v us, %v are exposed and %v wait for the slowest, want %v, %v and none", name, r.Compute, r.Exposed, r.Slowest, tt.compute, tt.exposed)
		}
	}
	// Three wake beside one that computes, with half of a processor each, and then three by
	// themselves: each under the label that it has waited for.
	norm := event(Start, 1, 0, 4)
	norm.Label = "norm"
	two := append(slices.Clone(meet), event(Compute, 0, 50, 0), norm, event(Wait, 1, 0, 0))
	r, err := Run(t.Context(), Cluster{Ranks: []int{4}, Cores: 2, Wake: 10}, Step{two}, Noise{}, 1, 1)
	if want := []Exposed{{"bucket", 20 * 3 / 4.0}, {"norm", 15 * 3 / 4.0}}; err != nil || !slices.EqualFunc(r.Exposed, want, func(a, b Exposed) bool { return a.Label == b.Label && math.Abs(a.US-b.US) <= 1e-3 }) {
		t.Errorf("two labels: %v are exposed, %v, want %v", r.Exposed, err, want)
	}
}

// TestLateOrWaking: eight ranks that wake together share a processor, and need it eight
// times for as long as one that is late is late. Pairs that know nothing of each other
// and wait for links most of the time meet more seldom, so there it matters less.
func TestLateOrWaking(t *testing.T) {
	slow := cost.Model{Within: cost.Costs{Latency: cost.Interval{Value: 5000}}}
	s := Step{[]Event{event(Compute, 0, 200, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}}
	took := func(ranks, beside int, wake, delay float64) float64 {
		c := Cluster{Ranks: []int{ranks}, Cores: 1, Beside: beside, Wake: wake, Delay: delay, Costs: slow}
		r, err := Run(t.Context(), c, s, Noise{[]float64{0.1, 1, 1.9}}, 400, 3)
		if err != nil {
			t.Fatal(err)
		}
		return r.Median
	}
	pairs, one := took(2, 4, 200, 0)-took(2, 4, 0, 200), took(8, 1, 200, 0)-took(8, 1, 0, 200)
	if want := 7 * 200.0; !(math.Abs(one-want) <= 1e-3) || pairs > 0.6*want {
		t.Errorf("time of a processor takes %v us longer than being late for pairs, and %v for eight, want %v for eight and much less for pairs", pairs, one, want)
	}
}

// TestCrowdSharesOut: of two ranks on one processor the step is what both compute, not
// twice what the slower does.
func TestCrowdSharesOut(t *testing.T) {
	s := Step{[]Event{event(Compute, 0, 100, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}}
	r, err := Run(t.Context(), Cluster{Ranks: []int{2}, Cores: 1}, s, Noise{[]float64{1, 3}}, 60, 4)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for _, us := range r.Steps {
		seen[math.Round(us*1e3)/1e3] = true
	}
	if len(seen) != 3 || !seen[200] || !seen[400] || !seen[600] {
		t.Errorf("steps of %v, want 200, 400 and 600", seen)
	}
	if sum := r.Compute + r.ExposedUS() + r.Slowest; !(math.Abs(sum-r.Median) <= 1e-3) {
		t.Errorf("the parts of a step of %v add up to %v", r.Median, sum)
	}
}

// TestCrowdOfEnough: with a processor for each rank, following machines event by event
// comes to what each rank alone does.
func TestCrowdOfEnough(t *testing.T) {
	for _, c := range []Cluster{{Ranks: []int{4}, Cores: 8}, {Ranks: Hosts(7, 2), Cores: 8}, {Ranks: Hosts(5, 1), Cores: 9, Together: 5, Wired: true}} {
		v := func(x float64) cost.Interval { return cost.Interval{Value: x} }
		c.Costs = cost.Model{Within: cost.Costs{Latency: v(3)}, Between: cost.Costs{Latency: v(40)}}
		want, err := Run(t.Context(), c, realistic(), Noise{[]float64{0.9, 1, 1.3}}, 6, 7)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlayer(c, realistic(), Noise{[]float64{0.9, 1, 1.3}}, 7)
		if err != nil {
			t.Fatal(err)
		}
		p.small, p.large = tariffOf(c.Costs), tariffOf(c.Costs)
		if err := newCrowd([]*player{p}, 0, 0).run(t.Context(), 6); err != nil {
			t.Fatal(err)
		}
		got := p.result()
		for i, us := range got.Steps {
			if !(math.Abs(us-want.Steps[i]) <= 1e-3) {
				t.Errorf("%v: step %d takes %v us, and %v played rank by rank", c.Ranks, i, us, want.Steps[i])
			}
		}
	}
}

// TestCrowdMoreProcessors: a step takes less with every processor more, until each rank
// has one.
func TestCrowdMoreProcessors(t *testing.T) {
	last := math.Inf(1)
	for cores := 1; cores <= 8; cores++ {
		c := Cluster{Ranks: Hosts(8, 4), Together: 2, Cores: cores, Costs: somePrices(), Wake: 5}
		r, err := Run(t.Context(), c, realistic(), Noise{[]float64{1, 1.1, 1.4}}, 5, 2)
		if err != nil {
			t.Fatal(err)
		}
		if r.Median >= last {
			t.Errorf("%d processors: %v us, with one less %v", cores, r.Median, last)
		}
		last = r.Median
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, Cluster{Ranks: []int{4}, Cores: 2}, realistic(), Noise{}, 1, 1); err == nil {
		t.Error("a crowd in a context that has ended: no error")
	}
}

// TestCrowdGoesOn: a rank that has ended a step begins the next, though others of its
// machine have not: two groups on one processor never leave it idle, although each
// waits half of its time for a link.
func TestCrowdGoesOn(t *testing.T) {
	link := cost.Model{Between: cost.Costs{Latency: cost.Interval{Value: 100}}}
	s := Step{[]Event{event(Compute, 0, 50, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}}
	c := Cluster{Ranks: Hosts(2, 1), Cores: 1, Together: 2, Wired: true, Costs: link}
	alone, err := Run(t.Context(), c, s, Noise{}, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Beside = 2
	both, err := Run(t.Context(), c, s, Noise{[]float64{0.5, 1, 1.5}}, 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !(math.Abs(alone.Median-200) <= 1e-3) || len(both.Steps) != 400 {
		t.Errorf("one group takes %v us, want 200; two have %d steps, want 400", alone.Median, len(both.Steps))
	}
	sum := 0.0
	for _, us := range both.Steps {
		sum += us / 400
	}
	if sum < 200 || sum > 280 { // in step with each other they would take 300
		t.Errorf("a step of two groups takes %v us, want 200 to 280", sum)
	}
}
