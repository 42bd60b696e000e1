package simulate

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// TestOneMessage: alpha + beta n, exactly; what is sent behind it waits for the link.
func TestOneMessage(t *testing.T) {
	g := newGroup(Cluster{Ranks: []int{1, 1}})
	p := prices{latency: 10, message: 3, perByte: 0.5}
	g.arrive(1, 1000, g.depart(0, 1, 1000, p), p)
	if got, want := g.lead.clock[1], 10+3+0.5*1000; got != want {
		t.Errorf("a message of 1000 bytes takes %v us, want %v", got, want)
	}
	g.arrive(1, 1000, g.depart(0, 1, 1000, p), p)
	if got, want := g.lead.clock[1], 10+3+0.5*2000; got != want {
		t.Errorf("two messages of 1000 bytes take %v us, want %v", got, want)
	}
}

// between is a model without costs inside hosts.
func between(latency, message, perByte, reduce float64) cost.Model {
	v := func(x float64) cost.Interval { return cost.Interval{Value: x} }
	return cost.Model{Between: cost.Costs{Latency: v(latency), Message: v(message), PerByte: v(perByte), Reduce: v(reduce)}}
}

// TestByHand: the times of collectives between hosts of one rank, as one counts them
// on paper, with L, o, b and g for the costs.
func TestByHand(t *testing.T) {
	const L, o, b, g = 100.0, 7.0, 0.003, 0.0005 // us, and us a byte
	m := between(L, o, 1e3*b, 1e3*g)
	header := float64(schedule.HeaderBytes)
	for _, test := range []struct {
		name         string
		hosts, bytes int
		want         float64
	}{
		// One round: both send, both get.
		{"doubling", 2, 4096, o + L + b*(4096+header) + g*2*4096},
		// Hosts 0 to 3 double among themselves in two rounds. What host 4 has sent to all
		// of them at the beginning is there long before host 0 has sent its third message.
		{"doubling", 5, 4096, 3*o + 2*L + 2*b*(4096+header) + 3*g*2*4096},
		// Each sends a header, which is on its way while the next is written; then half
		// of its vector, and the sum of the other half.
		{"exchange", 2, 1 << 20, 3*o + 2*L + 2*b*(1<<19) + g*(1<<20)},
		// Three headers; three slices of a quarter, the first of which leaves when it is
		// written; three results.
		{"exchange", 4, 1 << 20, (3+1+1)*o + 2*L + 2*3*b*(1<<18) + g*(1<<20)},
		// Eight rows of four, after five rounds of headers. A slice is 4 KB: each sends the others
		// of its row the eight that they hold, and adds up four times as many; then one to each
		// other row, and adds up eight. Results go back by the same ways.
		{"grid", 32, 1 << 17, 5*(o+L+b*header) + 4*(o+L) + 2*b*(3*8+7)*(1<<12) + g*(4*8+8)*(1<<12)},
	} {
		got, err := Collective(Cluster{Ranks: Hosts(test.hosts, 1), Costs: m}, collective.AllReduce, test.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(got-test.want) <= 1e-9*test.want) {
			t.Errorf("%s of %d bytes on %d hosts takes %v us, by hand %v", test.name, test.bytes, test.hosts, got, test.want)
		}
	}
	small := cost.Model{Within: cost.Costs{Latency: cost.Interval{Value: 5}, PerByte: cost.Interval{Value: 3}, Reduce: cost.Interval{Value: 1}}}
	if got, err := Collective(Cluster{Ranks: []int{4}, Costs: small}, collective.AllReduce, 4000); err != nil || !(math.Abs(got-(12+5+16)) <= 1e-9) {
		t.Errorf("4 KB within a host takes %v us, %v, by hand 33: each stages its own, one barrier, and each reads all of all", got, err)
	}
	within := cost.Model{Within: cost.Costs{Latency: cost.Interval{Value: 5}, Reduce: cost.Interval{Value: 1}}}
	got, err := Collective(Cluster{Ranks: []int{4}, Costs: within}, collective.AllReduce, 1<<20)
	if want := 2*5 + 1e-3*(1<<20); err != nil || !(math.Abs(got-want) <= 1e-9*want) {
		t.Errorf("1 MB within a host takes %v us, %v, by hand %v: two barriers, and each of four reads all of a quarter", got, err, want)
	}
}

func event(kind Kind, n int, us float64, bytes int) Event {
	return Event{Kind: kind, Collective: n, US: us, Bytes: bytes, Label: "bucket"}
}

// TestNothingCosts: ranks without noise and costs take the time that they compute.
func TestNothingCosts(t *testing.T) {
	s := Step{[]Event{event(Compute, 0, 700, 0), event(Start, 5, 0, 1<<20), event(Compute, 0, 300, 0), event(Wait, 5, 0, 0)}}
	for _, ranks := range [][]int{{1}, {8}, Hosts(20, 8), Hosts(13, 1)} {
		r, err := Run(t.Context(), Cluster{Ranks: ranks}, s, Noise{}, 5, 1)
		if err != nil || r.Median != 1000 || r.P10 != 1000 || r.P90 != 1000 || r.Compute != 1000 || r.ExposedUS() != 0 || r.Slowest != 0 {
			t.Errorf("%v: got %+v, %v, want steps of 1000 us", ranks, r, err)
		}
	}
}

// TestStragglers: the mean of the slowest of n draws from 1 to m, all with equal
// chances, is m minus the sum of (k/m)^n for k below m. Nothing else costs anything.
func TestStragglers(t *testing.T) {
	const m, steps = 100, 4000
	var noise Noise
	for k := 1; k <= m; k++ {
		noise.Ratios = append(noise.Ratios, float64(k))
	}
	s := Step{[]Event{event(Compute, 0, 1, 0), event(Start, 0, 0, 4), event(Wait, 0, 0, 0)}}
	for _, n := range []int{1, 2, 10, 64} {
		r, err := Run(t.Context(), Cluster{Ranks: Hosts(n, 4)}, s, noise, steps, 9)
		if err != nil {
			t.Fatal(err)
		}
		want, square := float64(m), 0.0
		for k := 1; k < m; k++ {
			want -= math.Pow(float64(k)/m, float64(n))
		}
		var mean float64
		for _, us := range r.Steps {
			mean += us / steps
			square += (us - want) * (us - want) / steps
		}
		if bound := 4 * math.Sqrt(square/steps); !(math.Abs(mean-want) <= bound) {
			t.Errorf("the slowest of %d takes %v on average, want %v ± %v", n, mean, want, bound)
		}
		if got := r.Compute + r.Slowest; !(math.Abs(got-r.Median) <= 1e-6*r.Median) {
			t.Errorf("%d ranks: computing and waiting for the slowest are %v us of a step of %v", n, got, r.Median)
		}
	}
}

// realistic is a step with all that there is.
func realistic() Step {
	var s Step
	n := 0
	for range 40 {
		s.Events = append(s.Events, Event{Kind: Compute, US: 900}, Event{Kind: Start, Collective: n, Bytes: 1024, Label: "batch norm"}, Event{Kind: Wait, Collective: n})
		n++
	}
	for i := range 10 {
		s.Events = append(s.Events, Event{Kind: Compute, US: 4000}, Event{Kind: Start, Collective: n + i, Bytes: 25 << 20, Label: "bucket"})
	}
	for i := range 10 {
		s.Events = append(s.Events, Event{Kind: Wait, Collective: n + i})
	}
	return s
}

func TestDeterministic(t *testing.T) {
	c := Cluster{Ranks: Hosts(21, 8), Cores: 8, Costs: somePrices()}
	noise := Noise{[]float64{0.9, 1, 1, 1.1, 1.7}}
	one, err := Run(t.Context(), c, realistic(), noise, 20, 7)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := Run(t.Context(), c, realistic(), noise, 20, 7); err != nil || !reflect.DeepEqual(one, two) {
		t.Errorf("the same seed gives %+v, %v, and then %+v", one, err, two)
	}
	if other, err := Run(t.Context(), c, realistic(), noise, 20, 8); err != nil || reflect.DeepEqual(one.Steps, other.Steps) {
		t.Errorf("another seed gives the same steps, %v", err)
	}
	if sum := one.Compute + one.ExposedUS() + one.Slowest; !(math.Abs(sum-one.Median) <= 0.05*one.Median) {
		t.Errorf("the parts of a step are %v us, the step takes %v", sum, one.Median)
	}
}

// TestWithout: removing any cost that a step has makes it shorter.
func TestWithout(t *testing.T) {
	c := Cluster{Ranks: Hosts(24, 8), Costs: somePrices()}
	noise := Noise{[]float64{1, 1.2}}
	all, err := Run(t.Context(), c, realistic(), noise, 9, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, cost := range Costs {
		less, err := Without(t.Context(), cost, c, realistic(), noise, 9, 7)
		if err != nil || less.Median >= all.Median {
			t.Errorf("without %v a step takes %v us, %v, with it %v", cost, less.Median, err, all.Median)
		}
	}
	if _, err := Without(t.Context(), 99, c, realistic(), noise, 1, 1); err == nil {
		t.Error("without a cost that there is not: no error")
	}
}

// TestWithoutEach: where there is one cost only, removing that leaves nothing, and removing
// any other changes nothing.
func TestWithoutEach(t *testing.T) {
	one := cost.Interval{Value: 1}
	for _, test := range []struct {
		name         string
		costs        cost.Model
		small, large Cost // whose it is, of what is just small and of a bit more
	}{
		{"latency between hosts", cost.Model{Between: cost.Costs{Latency: one}}, SmallLatency, LargeLatency},
		{"messages between hosts", cost.Model{Between: cost.Costs{Message: one}}, SmallLatency, LargeLatency},
		{"latency within a host", cost.Model{Within: cost.Costs{Latency: one}}, SmallLatency, LargeLatency},
		{"messages within a host", cost.Model{Within: cost.Costs{Message: one}}, SmallLatency, LargeLatency},
		{"bytes between hosts", cost.Model{Between: cost.Costs{PerByte: one}}, Bandwidth, Bandwidth},
		{"bytes within a host", cost.Model{Within: cost.Costs{PerByte: one}}, Memory, Memory},
		{"sums between hosts", cost.Model{Between: cost.Costs{Reduce: one}}, Reduction, Reduction},
		{"sums within a host", cost.Model{Within: cost.Costs{Reduce: one}}, Reduction, Reduction},
	} {
		for bytes, own := range map[int]Cost{schedule.Doubles: test.small, schedule.Doubles + 4: test.large} {
			c := Cluster{Ranks: []int{2, 2}, Costs: test.costs}
			s := Step{[]Event{event(Start, 0, 0, bytes), event(Wait, 0, 0, 0)}}
			all, err := Run(t.Context(), c, s, Noise{}, 1, 1)
			if err != nil || all.Median <= 0 {
				t.Fatalf("%s: %v us, %v", test.name, all.Median, err)
			}
			for _, removed := range Costs {
				want := all.Median
				if removed == own {
					want = 0
				}
				if r, err := Without(t.Context(), removed, c, s, Noise{}, 1, 1); err != nil || r.Median != want {
					t.Errorf("%s, %d bytes: without %v it takes %v us, %v, want %v", test.name, bytes, removed, r.Median, err, want)
				}
			}
		}
	}
}

// TestPercentiles: as many steps are longer than P90 as are shorter than P10, and the parts are
// those of a step as long as the median.
func TestPercentiles(t *testing.T) {
	for n, want := range map[int][3]float64{1: {1, 1, 1}, 2: {1, 1, 2}, 9: {1, 5, 9}, 10: {2, 5, 9}, 11: {2, 6, 10}, 20: {3, 10, 18}, 101: {11, 51, 91}} {
		p := player{program: &program{labels: []string{"bucket"}}, clock: make([]float64, 2)}
		for i := range n { // 1 to n, in an order of no kind
			us := float64(1 + (i*7+3)%n)
			p.steps = append(p.steps, split{us: us, compute: 20 * us, slowest: 2 * us, exposed: []float64{6 * us}, messages: int64(us), bytes: int64(8 * us)})
		}
		r := p.result()
		if got := [3]float64{r.P10, r.Median, r.P90}; got != want {
			t.Errorf("of steps of 1 to %d us P10, median and P90 are %v, want %v", n, got, want)
		}
		if m := r.Median; r.Compute != 10*m || r.Slowest != m || r.Exposed[0] != (Exposed{"bucket", 3 * m}) || r.Messages != int64(m) || r.Bytes != int64(8*m) {
			t.Errorf("of %d steps the parts of the one of %v us are %+v", n, m, r)
		}
	}
}

// TestSharedProcessor: a copy of a vector within a host is a processor's work, which
// delays what is computed meanwhile; on a processor of its own it does not. So are the bytes
// between hosts of one machine, unless they have links of their own.
func TestSharedProcessor(t *testing.T) {
	s := Step{[]Event{event(Start, 0, 0, 1<<20), event(Compute, 0, 5000, 0), event(Wait, 0, 0, 0)}}
	m := cost.Model{Within: cost.Costs{Reduce: cost.Interval{Value: 1}}} // 1 MB: 1048.576 us of reading
	for cores, want := range map[int]float64{2: 5000 + 1048.576, 4: 5000, 1: 2 * (5000 + 1048.576)} {
		r, err := Run(t.Context(), Cluster{Ranks: []int{2}, Cores: cores, Costs: m}, s, Noise{}, 3, 1)
		if err != nil || !(math.Abs(r.Median-want) <= 1e-6) {
			t.Errorf("2 ranks on %d processors: a step takes %v us, %v, want %v", cores, r.Median, err, want)
		}
	}
	bytes := between(0, 0, 1, 0) // of a header and two halves
	for wired, want := range map[bool]float64{true: 5000, false: 5000 + 1e-3*(1<<20+schedule.HeaderBytes)} {
		r, err := Run(t.Context(), Cluster{Ranks: Hosts(2, 1), Together: 2, Wired: wired, Cores: 2, Costs: bytes}, s, Noise{}, 1, 1)
		if err != nil || !(math.Abs(r.Median-want) <= 1e-6) {
			t.Errorf("two hosts of one machine, with links of their own %v: a step takes %v us, %v, want %v", wired, r.Median, err, want)
		}
	}
}

func TestOverlap(t *testing.T) {
	// The second all-reduce waits for the first in the queue; half of the first is hidden.
	one, err := Collective(Cluster{Ranks: Hosts(2, 1), Costs: between(0, 0, 1, 0)}, collective.AllReduce, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s := Step{[]Event{event(Start, 0, 0, 1<<20), event(Start, 1, 0, 1<<20), event(Compute, 0, one/2, 0), event(Wait, 1, 0, 0), event(Wait, 0, 0, 0)}}
	r, err := Run(t.Context(), Cluster{Ranks: Hosts(2, 1), Cores: 2, Costs: between(0, 0, 1, 0)}, s, Noise{}, 1, 1)
	if err != nil || !(math.Abs(r.Median-2*one) <= 1e-6) || !(math.Abs(r.ExposedUS()-1.5*one) <= 1e-6) || len(r.Exposed) != 1 {
		t.Errorf("two all-reduces of %v us take %v, of which %v are exposed, %v", one, r.Median, r.Exposed, err)
	}
}

func TestBadSteps(t *testing.T) {
	ok := Cluster{Ranks: []int{2}}
	for want, run := range map[string]func() (Result, error){
		"second time": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Start, 1, 0, 4), event(Start, 1, 0, 4)}}, Noise{}, 1, 1)
		},
		"not started": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Wait, 1, 0, 4)}}, Noise{}, 1, 1)
		},
		"waited for already": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Start, 1, 0, 4), event(Wait, 1, 0, 4), event(Wait, 1, 0, 4)}}, Noise{}, 1, 1)
		},
		"waits for 0": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Start, 1, 0, 4)}}, Noise{}, 1, 1)
		},
		"computes for": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Compute, 1, -1, 4)}}, Noise{}, 1, 1)
		},
		"computes for +Inf": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Compute, 1, math.Inf(1), 4)}}, Noise{}, 1, 1)
		},
		"of kind 0": func() (Result, error) { return Run(t.Context(), ok, Step{[]Event{{}}}, Noise{}, 1, 1) },
		"of -4 bytes": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{event(Start, 1, 0, -4)}}, Noise{}, 1, 1)
		},
		"starts alloc of 4 bytes": func() (Result, error) {
			return Run(t.Context(), ok, Step{[]Event{{Kind: Start, What: collective.Allocation, Bytes: 4}}}, Noise{}, 1, 1)
		},
		"0 steps":           func() (Result, error) { return Run(t.Context(), ok, Step{}, Noise{}, 0, 1) },
		"a ratio":           func() (Result, error) { return Run(t.Context(), ok, Step{}, Noise{[]float64{0}}, 1, 1) },
		"noise is +Inf":     func() (Result, error) { return Run(t.Context(), ok, Step{}, Noise{[]float64{1, math.Inf(1)}}, 1, 1) },
		"at least one host": func() (Result, error) { return Run(t.Context(), Cluster{}, Step{}, Noise{}, 1, 1) },
		"-1 us of a processor": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Wake: -1}, Step{}, Noise{}, 1, 1)
		},
		"NaN us late": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Delay: math.NaN()}, Step{}, Noise{}, 1, 1)
		},
		"is -1 us late": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Delay: -1}, Step{}, Noise{}, 1, 1)
		},
		"-1 cores": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Cores: -1}, Step{}, Noise{}, 1, 1)
		},
		"-1 hosts on a machine": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Together: -1}, Step{}, Noise{}, 1, 1)
		},
		"-1 groups": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Beside: -1}, Step{}, Noise{}, 1, 1)
		},
		"ranks on hosts are [0]": func() (Result, error) {
			_, err := Collective(Cluster{Ranks: []int{0}}, collective.AllReduce, 4)
			return Result{}, err
		},
		"others take NaN": func() (Result, error) {
			return Run(t.Context(), Cluster{Ranks: []int{2}, Others: math.NaN()}, Step{}, Noise{}, 1, 1)
		},
		"rank on each": func() (Result, error) { return Run(t.Context(), Cluster{Ranks: []int{1, 0}}, Step{}, Noise{}, 1, 1) },
	} {
		if _, err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	for _, k := range []planKey{{0, 4}, {collective.Broadcast + 1, 4}, {collective.Allocation, 4}, {collective.AllReduce, -4}} {
		if _, err := Collective(Cluster{Ranks: []int{1, 1}}, k.kind, k.bytes); err == nil || !strings.Contains(err.Error(), "expected a collective of 0 bytes or more") {
			t.Errorf("%v of %d bytes: got error %v", k.kind, k.bytes, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []Cluster{ok, {Ranks: []int{2}, Cores: 1}} {
		if _, err := Run(ended, c, Step{[]Event{event(Compute, 0, 1, 0)}}, Noise{}, 1, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: got error %v from a context that has ended", c, err)
		}
	}
}

// TestTenThousand counts what 10⁴ ranks send in a step.
func TestTenThousand(t *testing.T) {
	for _, each := range []int{8, 1} {
		ranks := Hosts(10_000, each)
		const large, small = 64 * 4 * 20_000, 1024
		s := Step{[]Event{event(Compute, 0, 100, 0), event(Start, 0, 0, large), event(Start, 1, 0, small), event(Wait, 0, 0, 0), event(Wait, 1, 0, 0)}}
		r, err := Run(t.Context(), Cluster{Ranks: ranks, Costs: somePrices()}, s, Noise{[]float64{1, 1.1}}, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		// In doubling, which comes before a grid, too, each receives once in each of its
		// rounds. In a row each sends to each, and so do the holders of a column: addends,
		// and results.
		grid, rounds := schedule.GridOf(len(ranks)), int64(0)
		for h := range len(ranks) {
			rounds += int64(len(schedule.Rounds(h, len(ranks))))
		}
		want := 2 * rounds
		for r := range grid.Rows() {
			lo, hi := grid.Row(r)
			want += 2 * int64((hi-lo)*(hi-lo-1))
		}
		want += 2 * int64(grid.Width*grid.Rows()*(grid.Rows()-1))
		if r.Messages != want {
			t.Errorf("hosts of %d: %d messages, want %d", each, r.Messages, want)
		}
		// By whatever ways, all hosts' addends of a slice but its own come to one host, and its
		// result goes to all others.
		if bytes := rounds*(small+2*schedule.HeaderBytes) + 2*int64(len(ranks)-1)*large; r.Bytes != bytes {
			t.Errorf("hosts of %d: %d bytes, want %d", each, r.Bytes, bytes)
		}
	}
}

// TestPartsOfTenThousand counts what 10⁴ ranks send of reduce-scatters and all-gathers: in
// rows each to each, in columns each part to, or from, all other rows; and headers.
func TestPartsOfTenThousand(t *testing.T) {
	ranks := Hosts(10_000, 8)
	grid, headers, rows := schedule.GridOf(len(ranks)), int64(0), int64(0)
	for h := range ranks {
		headers += int64(len(schedule.Rounds(h, len(ranks))))
	}
	for r := range grid.Rows() {
		lo, hi := grid.Row(r)
		rows += int64((hi - lo) * (hi - lo - 1))
	}
	want := headers + rows + int64(len(ranks)*(grid.Rows()-1))
	const part = 21 * elem // all of them are less than a chunk
	for _, kind := range []collective.Kind{collective.ReduceScatter, collective.AllGather} {
		s := Step{[]Event{{Kind: Start, What: kind, Bytes: part * 10_000}, {Kind: Wait}}}
		r, err := Run(t.Context(), Cluster{Ranks: ranks, Costs: somePrices()}, s, Noise{}, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		bytes := headers*schedule.HeaderBytes + int64(len(ranks)-1)*part*10_000
		if r.Messages != want || r.Bytes != bytes {
			t.Errorf("%v: %d messages of %d bytes, want %d of %d", kind, r.Messages, r.Bytes, want, bytes)
		}
	}
}

// TestPartsOfUneven: of hosts of one rank and of three each sends the other a header, and its
// ranks' parts of a reduce-scatter, or the other its own of an all-gather: four parts in all.
func TestPartsOfUneven(t *testing.T) {
	const part = 1 << 18
	for _, kind := range []collective.Kind{collective.ReduceScatter, collective.AllGather} {
		s := Step{[]Event{{Kind: Start, What: kind, Bytes: 4 * part}, {Kind: Wait}}}
		r, err := Run(t.Context(), Cluster{Ranks: []int{1, 3}}, s, Noise{}, 1, 1)
		if want := int64(4*part + 2*schedule.HeaderBytes); err != nil || r.Messages != 4 || r.Bytes != want {
			t.Errorf("%v: %d messages of %d bytes, %v, want 4 of %d", kind, r.Messages, r.Bytes, err, want)
		}
	}
}

// BenchmarkStep is a step of 10⁴ ranks with 50 collectives.
func BenchmarkStep(b *testing.B) {
	for name, each := range map[string]int{"hosts of 8": 8, "hosts of 1": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := Cluster{Ranks: Hosts(10_000, each), Cores: 2 * each, Costs: somePrices()}
			if _, err := Run(b.Context(), c, realistic(), Noise{[]float64{1, 1.01, 1.1}}, b.N, 1); err != nil {
				b.Fatal(err)
			}
		})
	}
}
