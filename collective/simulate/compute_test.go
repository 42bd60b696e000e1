package simulate

import (
	"math"
	"testing"

	"ebtrain/collective/cost"
)

// TestComputeBesideCollectives: of a shared processor computing has what collectives under way
// leave of it, one after the other, and all of it before, between and behind them; of one that
// is not shared it has all.
func TestComputeBesideCollectives(t *testing.T) {
	spans := []span{
		{begin: 10, end: 20, work: 5},   // half of the processor is left, so 5 us of it
		{begin: 20, end: 40, work: 15},  // a quarter, 5 us
		{begin: 50, end: 60, work: 10},  // nothing
		{begin: 100, end: 110, work: 0}, // all
	}
	for _, test := range []struct {
		shared bool
		us     []float64 // computed one after the other, from 0 on
		want   []float64 // when each is done
	}{
		{true, []float64{10}, []float64{10}},
		{true, []float64{12}, []float64{14}},
		{true, []float64{12, 1, 2, 3}, []float64{14, 16, 20, 32}}, // the last takes 12 of the second
		{true, []float64{20}, []float64{40}},
		{true, []float64{25, 5, 1}, []float64{45, 50, 61}},
		{true, []float64{31}, []float64{61}},
		{true, []float64{70, 0, 85}, []float64{100, 100, 185}},
		{false, []float64{12, 1, 70}, []float64{12, 13, 83}},
	} {
		p := player{group: &group{shared: []bool{test.shared}}, host: []int{0}, clock: []float64{0}, window: []int{0}, played: len(spans)}
		for _, s := range spans {
			p.runs = append(p.runs, []span{s})
		}
		for i, us := range test.us {
			before := p.clock[0]
			took := p.compute(0, us)
			if now := p.clock[0]; !(math.Abs(now-test.want[i]) <= 1e-9) || !(math.Abs(before+took-now) <= 1e-9) {
				t.Errorf("shared %v, computing for %v: number %d, begun at %v, took %v and is done at %v, want %v", test.shared, test.us, i, before, took, now, test.want[i])
			}
		}
	}
}

// TestStepsAreAlike: without noise each step takes as long as the first: what collectives take
// of shared processors in one is taken in all.
func TestStepsAreAlike(t *testing.T) {
	m := cost.Model{Within: cost.Costs{Reduce: cost.Interval{Value: 1}}}
	s := Step{[]Event{event(Start, 0, 0, 1<<20), event(Start, 1, 0, 1<<20), event(Compute, 0, 5000, 0), event(Compute, 0, 10, 0), event(Wait, 0, 0, 0), event(Wait, 1, 0, 0)}}
	r, err := Run(t.Context(), Cluster{Ranks: []int{2}, Cores: 2, Costs: m}, s, Noise{}, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, us := range r.Steps {
		if want := 5010 + 2*1e-3*(1<<20); !(math.Abs(us-want) <= 1e-6) {
			t.Errorf("step %d takes %v us, want %v", i, us, want)
		}
	}
}

// TestStepsAdjoin: of ranks that nothing holds together each step ends when the last of them
// ends it, however early another has, and the next begins there: all together take as long as
// the slowest rank.
func TestStepsAdjoin(t *testing.T) {
	const ranks, steps = 3, 20
	noise := Noise{[]float64{1, 2, 5, 11}}
	s := Step{[]Event{event(Compute, 0, 100, 0)}}
	c := Cluster{Ranks: []int{ranks}, Cores: 8}
	r, err := Run(t.Context(), c, s, noise, steps, 3)
	if err != nil {
		t.Fatal(err)
	}
	draws, err := newPlayer(c, s, noise, 3)
	if err != nil {
		t.Fatal(err)
	}
	var ended [ranks]float64
	before := 0.0
	for i, us := range r.Steps {
		last := 0.0
		for rank := range ended {
			ended[rank] += 100 * draws.draw(i, rank)
			last = max(last, ended[rank])
		}
		if !(math.Abs(us-(last-before)) <= 1e-9) {
			t.Errorf("step %d takes %v us, want %v: the last rank ends it at %v, and ended the one before at %v", i, us, last-before, last, before)
		}
		before = last
	}
}

// TestCollectivesQueue: of two that are started together the second begins when the first is
// over, also where they need no link that is busy.
func TestCollectivesQueue(t *testing.T) {
	const latency = 100.0
	s := Step{[]Event{event(Start, 0, 0, 4), event(Start, 1, 0, 4), event(Wait, 1, 0, 0), event(Wait, 0, 0, 0)}}
	r, err := Run(t.Context(), Cluster{Ranks: Hosts(2, 1), Costs: between(latency, 0, 0, 0)}, s, Noise{}, 1, 1)
	if err != nil || !(math.Abs(r.Median-2*latency) <= 1e-9) {
		t.Errorf("two collectives of %v us take %v, %v", latency, r.Median, err)
	}
}
