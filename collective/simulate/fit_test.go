package simulate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// measured is a report of times that a model gives, with noise of so many percent.
func measured(t *testing.T, rng *rand.Rand, m cost.Model, noise float64, ranks ...int) cost.Report {
	t.Helper()
	r := cost.Report{Version: cost.Version, Collective: "all-reduce", Type: "f32", Memory: "alloc", Ranks: ranks, CPUs: 64}
	for bytes := 64; bytes <= 64<<20; bytes *= 4 {
		us, err := Collective(Cluster{Ranks: ranks, Cores: 64, Costs: m}, collective.AllReduce, bytes)
		if err != nil {
			t.Fatal(err)
		}
		r.Sizes = append(r.Sizes, cost.Size{Bytes: bytes, Times: cost.Times{Median: us * (1 + noise/100*rng.NormFloat64()), Reps: 100}})
	}
	return r
}

// apart is the model's intervals, by name, beside the truth.
func apart(m, truth cost.Model) map[string][2]cost.Interval {
	return map[string][2]cost.Interval{
		"latency between": {m.Between.Latency, truth.Between.Latency}, "message between": {m.Between.Message, truth.Between.Message},
		"byte between": {m.Between.PerByte, truth.Between.PerByte}, "reduction between": {m.Between.Reduce, truth.Between.Reduce},
		"latency within": {m.Within.Latency, truth.Within.Latency}, "message within": {m.Within.Message, truth.Within.Message},
		"reduction within": {m.Within.Reduce, truth.Within.Reduce},
	}
}

func reportsOf(t *testing.T, rng *rand.Rand, truth cost.Model, noise float64) []cost.Report {
	return []cost.Report{measured(t, rng, truth, noise, 2), measured(t, rng, truth, noise, 4), measured(t, rng, truth, noise, 1, 1),
		measured(t, rng, truth, noise, 1, 1, 1, 1), measured(t, rng, truth, noise, 2, 2)}
}

// TestFitExact: from times without noise the costs come back.
func TestFitExact(t *testing.T) {
	truth := somePrices()
	m, err := Fit(reportsOf(t, rand.New(rand.NewPCG(1, 2)), truth, 0))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range apart(m, truth) {
		if !(math.Abs(v[0].Value-v[1].Value) <= 1e-3*v[1].Value) {
			t.Errorf("%s is %v, want %v", name, v[0], v[1].Value)
		}
	}
	for _, r := range m.Measured {
		if !(math.Abs(r.Relative()) <= 1e-3) {
			t.Errorf("residual of %v %d bytes is %v, want 0", r.Ranks, r.Bytes, r.Relative())
		}
	}
	if len(m.Doubts) > 0 {
		t.Errorf("doubts without a reason: %q", m.Doubts)
	}
}

// TestFitCovers: of noisy times with a wild one each, the truth is in the intervals
// about as often as they promise, and twice the ranks are predicted.
func TestFitCovers(t *testing.T) {
	draws := 25
	if testing.Short() {
		draws = 8
	}
	truth := somePrices()
	in := map[string]int{}
	rng := rand.New(rand.NewPCG(3, 4))
	for range draws {
		reports := reportsOf(t, rng, truth, 5)
		reports[2].Sizes[rng.IntN(10)].Median *= 3
		m, err := Fit(reports)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range apart(m, truth) {
			if v[0].Low <= v[1].Value && v[1].Value <= v[0].High {
				in[name]++
			}
		}
		for _, bytes := range []int{4096, 1 << 20, 64 << 20} {
			c := Cluster{Ranks: Hosts(8, 1), Costs: m}
			got, err := Collective(c, collective.AllReduce, bytes)
			c.Costs = truth
			want, _ := Collective(c, collective.AllReduce, bytes)
			if err != nil || !(math.Abs(got/want-1) <= 0.15) {
				t.Errorf("%d bytes on 8 hosts are predicted to take %v us, %v, want %v", bytes, got, err, want)
			}
		}
	}
	for name, n := range in {
		share := float64(n) / float64(draws)
		t.Logf("%s is in its interval in %.0f %%", name, 100*share)
		if share < 0.75 {
			t.Errorf("%s is in its interval in %.0f %% of draws, want about 95", name, 100*share)
		}
	}
}

func TestFitDoubts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	few := measured(t, rng, somePrices(), 1, 1, 1)
	few.Sizes = few.Sizes[:2]
	changed := measured(t, rng, somePrices(), 1, 1, 1)
	changed.Sizes[4].First, changed.Sizes[4].Last = 100, 170
	wild := measured(t, rng, somePrices(), 0, 1, 1)
	wild.Sizes[3].Median *= 4
	for want, r := range map[string]cost.Report{
		"at 2 sizes": few, "too few for": few, "100 us in the first third of the repetitions and 170": changed,
		"took": wild, "nothing was measured within a host": wild,
	} {
		m, err := Fit([]cost.Report{r})
		if err != nil || !strings.Contains(strings.Join(m.Doubts, "\n"), want) {
			t.Errorf("doubts are %q, %v, want one with %q", m.Doubts, err, want)
		}
	}
	for what, change := range map[string]func(r *cost.Report){
		"broadcasts": func(r *cost.Report) { r.Collective = "broadcast" }, "f64": func(r *cost.Report) { r.Type = "f64" },
		"vectors that are copied": func(r *cost.Report) { r.Memory = "ordinary" }, "no ranks": func(r *cost.Report) { r.Ranks = nil },
		"one rank":           func(r *cost.Report) { r.Ranks = []int{1} },
		"fewer bytes than 0": func(r *cost.Report) { r.Sizes = []cost.Size{{Bytes: -8, Times: cost.Times{Median: 5}}} },
		"no time":            func(r *cost.Report) { r.Sizes = []cost.Size{{Bytes: 8}} },
	} {
		other := wild
		change(&other)
		if _, err := Fit([]cost.Report{other}); err == nil {
			t.Errorf("a report of %s: no error", what)
		}
	}
	if _, err := Fit(nil); err == nil {
		t.Error("no report: no error")
	}
}

// TestFitTakesReports: hosts that are only pretended share their machine and its processors in
// what is fitted as in what was measured; and of a time that somebody else has made longer in
// one third of the repetitions the other counts.
func TestFitTakesReports(t *testing.T) {
	for machines, together := range map[int]int{0: 0, 1: 3, 3: 0} {
		r := cost.Report{Collective: "all-reduce", Type: "f32", Memory: "alloc", Ranks: []int{1, 1, 1}, CPUs: 5, Machines: machines}
		r.Sizes = []cost.Size{{Bytes: 8, Times: cost.Times{Median: 100, First: 60, Last: 110}}, {Bytes: 16, Times: cost.Times{Median: 100, First: 95, Last: 110}}}
		var f fit
		if err := f.add(r); err != nil {
			t.Fatal(err)
		}
		for i, want := range []point{{bytes: 8, us: 60}, {bytes: 16, us: 100}} {
			if p := f.points[i]; p.bytes != want.bytes || p.us != want.us || p.cluster.Cores != 5 || p.cluster.Together != together || len(p.cluster.Ranks) != 3 {
				t.Errorf("on %d machines: got %d bytes in %v us on %+v, want %d in %v on 5 processors, with %d hosts together", machines, p.bytes, p.us, p.cluster, want.bytes, want.us, together)
			}
		}
	}
}
