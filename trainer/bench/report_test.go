package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/collective/cost"
)

// TestSummarise: images/s are a batch over a step, the most of them in the shortest; and
// efficiency is images/s of a rank over those of the fewest ranks, of the same scaling,
// round by round.
func TestSummarise(t *testing.T) {
	steps := func(at func(i int) float64) (all []float64) {
		for i := range 5 {
			all = append(all, at(i))
		}
		return all
	}
	one := &Case{Ranks: 1, Batch: 4, Weak: true, Turns: steps(func(i int) float64 { return 1000 * float64(1+i) })}
	all := &Case{Ranks: 2, Batch: 8, Strong: true, Weak: true, Turns: steps(func(i int) float64 { return 1250 * float64(1+i) })}
	alone := &Case{Ranks: 1, Batch: 8, Strong: true, Turns: steps(func(i int) float64 { return 2000 * float64(1+i) })}
	for _, c := range []*Case{one, alone, all} {
		c.add(splitsOf([][]parts{{{Compute: 1}}, {{Compute: 1}}}[:c.Ranks]))
	}
	r := &Report{Cases: []*Case{one, alone, all}}
	r.summarise()
	if i := one.Images; !(math.Abs(i.Value-4e6/3000) <= 1e-9) || i.Low != 4e6/5000 || i.High != 4e6/1000 {
		t.Errorf("images/s %+v of steps of 1 to 5 ms", i)
	}
	if one.WeakEfficiency != nil || one.StrongEfficiency != nil || alone.StrongEfficiency != nil || alone.WeakEfficiency != nil {
		t.Error("one rank has an efficiency")
	}
	if w, s := all.WeakEfficiency, all.StrongEfficiency; !(math.Abs(w.Value-0.8) <= 1e-12) || !(math.Abs(w.Low-0.8) <= 1e-12) || !(math.Abs(s.Value-0.8) <= 1e-12) {
		t.Errorf("efficiencies %+v and %+v, want 0.8 in each round", w, s)
	}
	all.took(turn{others: -5, lasted: 10})
	if all.Others != 0 {
		t.Errorf("others had %v of the processors", all.Others)
	}
	all.took(turn{others: 15, lasted: 10})
	if all.Others != 0.5 {
		t.Errorf("others had %v of the processors, want 10 us of 20", all.Others)
	}
}

// TestPartsAreShort: where the medians of parts are far from adding up to the median step,
// the report says so.
func TestPartsAreShort(t *testing.T) {
	for _, tt := range []struct {
		step float64
		want bool
	}{{41200, false}, {44000, false}, {80500, true}, {30000, true}} {
		c := &Case{Ranks: 2, Batch: 16, OnHosts: []int{2}, Step: cost.Interval{Value: tt.step}, Compute: 28140, Exposed: 8930, Data: 10, Slowest: 4080}
		r := &Report{Cores: 2, Threads: 1, Cases: []*Case{c}}
		var out bytes.Buffer
		if err := r.print(&out); err != nil || strings.Contains(out.String(), "The parts of 2 rank(s) with a batch of 16 add up to 41.16 ms and not") != tt.want {
			t.Errorf("a step of %v us: %v\n%s", tt.step, err, &out)
		}
	}
}

// TestPlan: which cases so many ranks measure.
func TestPlan(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--batch 16 --scaling both", "1×16s 1×4w 2×16s 2×8w 4×16sw"},
		{"--batch 16 --scaling strong", "1×16s 2×16s 4×16s"},
		{"--batch 16 --scaling weak", "1×4w 2×8w 4×16w"},
		{"--batch 12 --scaling strong --ranks 3,1,3", "1×12s 3×12s"},
	} {
		o, _, err := parse(strings.Fields(c.args), nil)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := o.plan(4)
		var got []string
		for _, k := range cases {
			text := fmt.Sprintf("%d×%d", k.Ranks, k.Batch)
			if k.Strong {
				text += "s"
			}
			if k.Weak {
				text += "w"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); err != nil || text != c.want {
			t.Errorf("%s: %s, %v; want %s", c.args, text, err, c.want)
		}
	}
	for _, scaling := range []string{"strong", "weak", "both"} {
		o, _, err := parse(strings.Fields("--preset vages-ksd-board --batch 6 --scaling "+scaling), nil)
		if err != nil {
			t.Fatal(err)
		}
		const want = "--batch 6 gives each of 2 ranks 3 samples, and --algo vages takes samples in groups of 2: want a multiple of 4"
		if _, err := o.plan(2); err == nil || err.Error() != want {
			t.Errorf("--scaling %s: %v, want that %s", scaling, err, want)
		}
	}
	for _, c := range []struct {
		check, most, upTo int
		want              int
	}{{0, 8, 0, 8}, {1, 8, 0, 4}, {0, 8, 3, 3}, {1, 8, 3, 3}} {
		o := &options{check: c.check > 0, fitUpTo: c.upTo}
		if got := o.fitted(c.most); got != c.want {
			t.Errorf("%+v: fitted on up to %d", c, got)
		}
	}
}

// TestCrowd: ranks share processors where all of a machine have more threads than it has; a
// machine is what says so, unless machines have different numbers of hosts.
func TestCrowd(t *testing.T) {
	for _, c := range []struct {
		machines string
		threads  int
		together int
		crowd    float64
	}{
		{"m m n n", 1, 2, 1}, {"m m n n", 3, 2, 3}, {"m n o p", 2, 1, 1}, {"m m m n", 2, 1, 1}, {"m n n n", 2, 1, 1}, {"m m m m", 2, 4, 4},
	} {
		r := &Report{Hosts: strings.Split("abcd", ""), Machines: strings.Fields(c.machines), Threads: c.threads, Cores: 2}
		if got := r.together(4); got != c.together {
			t.Errorf("%s: %d hosts are one machine, want %d", c.machines, got, c.together)
		}
		if got := r.crowd(&Case{Ranks: 4, OnHosts: []int{1, 1, 1, 1}}); got != c.crowd {
			t.Errorf("%s, %d threads: %v threads on a processor, want %v", c.machines, c.threads, got, c.crowd)
		}
	}
}

// TestLine: what a rank computes is a part for itself and one for each sample, by the cases
// that have processors enough; in proportion to its samples where that cannot be told.
func TestLine(t *testing.T) {
	of := func(ranks, batch int, compute, busy float64) *Case {
		return &Case{Ranks: ranks, OnHosts: []int{ranks}, Batch: batch, Weak: true, Compute: compute, Busy: busy, Events: known().Cases[1].Events}
	}
	for name, c := range map[string]struct {
		cases       []*Case
		fixed, each float64
		batches     int
	}{
		"a line":                          {[]*Case{of(1, 8, 1800, 0), of(2, 8, 1400, 0)}, 1000, 100, 2},
		"no longer than it had one":       {[]*Case{of(1, 8, 2500, 1800), of(2, 8, 1400, 9999)}, 1000, 100, 2},
		"but for who shares processors":   {[]*Case{of(1, 8, 1800, 0), of(2, 8, 1400, 0), of(4, 4, 9000, 0)}, 1000, 100, 2},
		"one size":                        {[]*Case{of(1, 8, 1600, 0), of(2, 16, 1600, 0)}, 0, 200, 0},
		"less than nothing for no sample": {[]*Case{of(1, 8, 1800, 0), of(2, 8, 400, 0)}, 0, 100, 0},
	} {
		r := &Report{Cases: c.cases, Cores: 2, Threads: 1, FitUpTo: 4, Hosts: strings.Split("aaaa", "")}
		fixed, each, batches := r.line()
		if !(math.Abs(fixed-c.fixed) <= 1e-6) || !(math.Abs(each-c.each) <= 1e-6) || len(batches) != c.batches {
			t.Errorf("%s: %v and %v for each sample, of the batches %v; want %v and %v", name, fixed, each, batches, c.fixed, c.each)
		}
	}
}

// TestLinks: a byte of a link of 8 Gbit/s takes a nanosecond, and what is not given is as it
// was measured.
func TestLinks(t *testing.T) {
	exact := func(v float64) cost.Interval { return cost.Interval{Value: v, Low: v, High: v} }
	m := cost.Model{Between: cost.Costs{Latency: cost.Interval{Value: 5, Low: 4, High: 6}, PerByte: exact(3)}}
	if got := (links{gbit: 8}).of(m); got.Between.PerByte != exact(1) || got.Between.Latency != m.Between.Latency {
		t.Errorf("got %+v", got.Between)
	}
	if got := (links{us: 7}).of(m); got.Between.Latency != exact(7) || got.Between.PerByte != m.Between.PerByte {
		t.Errorf("got %+v", got.Between)
	}
}
