package main

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
)

// known is a report of a step that computes for 10 ms and has 40 small all-reduces and
// one of 4 MB, on two ranks whose collectives cost next to nothing.
func known() *Report {
	exact := func(v float64) cost.Interval { return cost.Interval{Value: v, Low: v, High: v} }
	c := &Case{Ranks: 2, OnHosts: []int{2}, Batch: 16, Strong: true, Weak: true, Compute: 10000, Data: 200, Noise: []float64{1},
		Step: cost.Interval{Value: 10200, Low: 10100, High: 10300}, Turns: []float64{10200}}
	for i := range 40 {
		c.Events = append(c.Events, simulate.Event{Kind: simulate.Compute, US: 250},
			simulate.Event{Kind: simulate.Start, Collective: i, Bytes: 512, Label: batchNorm}, simulate.Event{Kind: simulate.Wait, Collective: i})
	}
	c.Events = append(c.Events, simulate.Event{Kind: simulate.Start, Collective: 40, Bytes: 4 << 20, Label: gradients}, simulate.Event{Kind: simulate.Wait, Collective: 40})
	one := &Case{Ranks: 1, OnHosts: []int{1}, Batch: 8, Weak: true, Compute: 10000, Step: exact(10200), Turns: []float64{10200}}
	return &Report{Format: Format, Version: Version, Seed: 3, Threads: 1, Cores: 2, Hosts: []string{"a", "a"}, FitUpTo: 2, Cases: []*Case{one, c},
		Model: &cost.Model{Version: cost.ModelVersion, Between: cost.Costs{Latency: cost.Interval{Value: 50, Low: 40, High: 60}, PerByte: exact(0.8)}}}
}

func extrapolated(t *testing.T, r *Report, args string) *Report {
	t.Helper()
	o, _, err := parse(strings.Fields(args), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.extrapolate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPredicts has the costs of the known step by hand: 64 ranks on hosts of 8 are 8
// hosts, which exchange small vectors in at least one round of 50 us.
func TestPredicts(t *testing.T) {
	r := extrapolated(t, known(), "--predict 8,64")
	one, many := r.Predictions[0], r.Predictions[1]
	if one.Batch != 64 || !(math.Abs(one.Step.Value-10200) <= 1) || !(math.Abs(one.Efficiency.Value-1) <= 1e-3) {
		t.Errorf("a host of 8: %+v, want the step of 10200 us", one)
	}
	if many.Step.Value < 10200+40*50 || many.Efficiency.Value > 0.85 || !(many.Step.Low < many.Step.Value && many.Step.Value < many.Step.High) {
		t.Errorf("64 ranks: step %v, efficiency %v", many.Step, many.Efficiency)
	}
	if l := many.Losses[0]; l.Name != "waiting for all-reduces of batch norm" || l.Share < 0.1 {
		t.Errorf("the largest loss is %+v", l)
	}
	m := many.Remedies[0]
	for _, want := range []string{"At 64 ranks ", "the latency of 40 small all-reduces (40 of batch norm): join several into one"} {
		if !strings.Contains(m.Say, want) {
			t.Errorf("the first remedy is %+v, want %q", m, want)
		}
	}
	i := slices.IndexFunc(many.Remedies, func(m Remedy) bool { return m.Cost == "data" })
	if d := many.Remedies[i]; !(math.Abs(many.Result.Median-d.US-200) <= 1) {
		t.Errorf("without data %v us, with %v, want 200 less", d.US, many.Result.Median)
	}
	for _, m := range many.Remedies {
		if m.US > many.Result.Median*1.0001 || (m.Say != "") != (m.Share >= little) {
			t.Errorf("without %s: %+v", m.Cost, m)
		}
		if share := 1 - m.US/many.Result.Median; !(math.Abs(m.Share-share) <= 1e-12) || !(math.Abs(m.Efficiency*m.US-10200) <= 1) {
			t.Errorf("without %s: %+v, want a share of %v, and the efficiency of 10200 us in %v", m.Cost, m, share, m.US)
		}
	}
	slow := extrapolated(t, known(), "--predict 64 --link-gbit 0.1")
	if slow.Predictions[0].Step.Value < 5*many.Step.Value {
		t.Errorf("on links of 0.1 Gbit/s a step takes %v us, on 10 Gbit/s %v", slow.Predictions[0].Step.Value, many.Step.Value)
	}
}

// simulates leaves a test out by -short: it computes for seconds as TestPredicts does.
func simulates(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: some seconds of simulation; TestPredicts simulates too")
	}
}

// TestPredictsParts: a step that scatters what it reduces, and then gathers, is predicted for
// hosts in a grid as well, and takes about as long as one that reduces to all.
func TestPredictsParts(t *testing.T) {
	simulates(t)
	parted := known()
	c := parted.Cases[1]
	c.Events = c.Events[:len(c.Events)-2]
	for i, what := range []collective.Kind{collective.ReduceScatter, collective.AllGather} {
		c.Events = append(c.Events, simulate.Event{Kind: simulate.Start, Collective: 40 + i, What: what, Bytes: 4 << 20, Label: gradients},
			simulate.Event{Kind: simulate.Wait, Collective: 40 + i})
	}
	const args = "--predict 30 --ranks-per-host 1 --link-gbit 10" // a grid with a short row
	whole, parts := extrapolated(t, known(), args).Predictions, extrapolated(t, parted, args).Predictions
	for i := range parts {
		if ratio := parts[i].Step.Value / whole[i].Step.Value; ratio < 0.9 || ratio > 1.2 {
			t.Errorf("%d ranks: a step takes %v us, with an all-reduce %v", parts[i].Ranks, parts[i].Step, whole[i].Step)
		}
	}
}

// TestOtherLinks: of what two hosts were measured to take, nothing says how much of it is
// latency and how much each message. A given latency does not say so either.
func TestOtherLinks(t *testing.T) {
	simulates(t)
	r := known()
	r.Model.Between.Latency, r.Model.Between.Message = cost.Interval{High: 50}, cost.Interval{Value: 50, High: 100}
	r.Model.Precision = make([][]float64, 8)
	for i := range r.Model.Precision {
		r.Model.Precision[i] = make([]float64, 8)
	}
	const latency, message = 4, 5 // between hosts; their sum is known to a microsecond
	for _, i := range []int{latency, message} {
		r.Model.Precision[i][latency], r.Model.Precision[i][message] = 1, 1
	}
	p := extrapolated(t, r, "--predict 512 --link-us 10").Predictions[0]
	small := 10200 + 41*50.0 // nearly all of it was latency
	if p.Step.Value < 2*small || p.Step.Low > 0.7*p.Step.Value {
		t.Errorf("a step of 512 ranks takes %v us, want from about %.0f on", p.Step, small)
	}
}

// TestSameBits: the same report predicts the same, also after it was a file.
func TestSameBits(t *testing.T) {
	simulates(t)
	a := extrapolated(t, known(), "--predict 16,64")
	text, err := json.Marshal(known())
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	b := extrapolated(t, &again, "--predict 16,64")
	if !reflect.DeepEqual(a.Predictions, b.Predictions) {
		t.Errorf("got %+v\nand %+v", a.Predictions, b.Predictions)
	}
}

// TestChecks predicts a measured case that the model is not of.
func TestChecks(t *testing.T) {
	r := known()
	r.Cores, r.Hosts = 8, []string{"a", "a", "a", "a"}
	r.Cases = append(r.Cases, &Case{Ranks: 4, OnHosts: []int{4}, Batch: 32, Weak: true, Step: cost.Interval{Value: 12750}},
		&Case{Ranks: 4, OnHosts: []int{4}, Batch: 16, Strong: true, Step: cost.Interval{Value: 5200}})
	r.Cases[1].Strong = false
	extrapolated(t, r, "--predict 1 --check --fit-up-to 2")
	if len(r.Checks) != 2 || !(math.Abs(r.Checks[0].Error+0.2) <= 1e-3) {
		t.Fatalf("checks %+v, want 20 %% less than measured", r.Checks)
	}
	if e := r.Checks[1].Error; !(math.Abs(e) <= 1e-3) {
		t.Errorf("half the samples take half the time to compute: error %v", e)
	}
}

// TestBasis: no step of ranks that share processors is played where there is another.
func TestBasis(t *testing.T) {
	r := known()
	big := *r.Cases[1]
	big.Ranks, big.OnHosts, big.Batch = 4, []int{4}, 32
	r.Cases, r.FitUpTo = append(r.Cases, &big), 4
	if b := r.basis(); b != r.Cases[1] {
		t.Errorf("4 ranks on 2 processors are played: %+v", b)
	}
	r.Cores = 4
	if b := r.basis(); b != &big {
		t.Errorf("2 ranks are played, not 4: %+v", b)
	}
	r.FitUpTo = 2
	if b := r.basis(); b != r.Cases[1] {
		t.Errorf("more ranks are played than are fitted on: %+v", b)
	}
	strong := *r.Cases[1]
	strong.Weak, strong.Batch = false, 8
	for _, cases := range [][]*Case{{&strong, r.Cases[1]}, {r.Cases[1], &strong}} {
		r := &Report{Cases: cases, Cores: 2, Threads: 1, FitUpTo: 2, Hosts: r.Hosts}
		if b := r.basis(); b == &strong {
			t.Error("ranks are played that have another batch than those that are predicted")
		}
	}
}

// TestStrong: with a fixed batch a rank of more has less to compute, by the line through
// what was measured, and the part of a step that does not shrink is a loss.
func TestStrong(t *testing.T) {
	r := known()
	r.Model = &cost.Model{}                                                                               // collectives cost nothing
	r.Cases[0] = &Case{Ranks: 1, OnHosts: []int{1}, Batch: 16, Strong: true, Compute: 18000, Busy: 18500} // 2 ms, and 1 ms for each sample
	extrapolated(t, r, "--scaling strong --predict 4,16,64")
	if len(r.Predictions) != 2 || !reflect.DeepEqual(r.Unshared, []int{64}) {
		t.Fatalf("%d predictions, and none for %v, want those of 4 and 16 and none for 64", len(r.Predictions), r.Unshared)
	}
	for i, n := range []float64{4, 16} {
		q := r.Predictions[i]
		if want := 200 + 2000 + 16000/n; !(math.Abs(q.Step.Value-want) <= 1) || !q.Strong || q.Batch != 16 {
			t.Errorf("%v ranks with a batch of %d: %v us, want %v", n, q.Batch, q.Step.Value, want)
		}
		if want := (200 + 18000) / n / (200 + 2000 + 16000/n); !(math.Abs(q.Efficiency.Value-want) <= 1e-3) {
			t.Errorf("%v ranks: efficiency %v, want %v", n, q.Efficiency.Value, want)
		}
		if l := q.Losses[0]; l.Name != "computing that a smaller batch does not save" || !(math.Abs(l.US-(2200-2200/n)) <= 1) {
			t.Errorf("%v ranks lose most by %+v", n, l)
		}
	}
	var out strings.Builder
	if err := r.printPredictions(&out); err != nil || !strings.Contains(out.String(), "2.00 ms and 1.00 for each sample, the line through measured batches of 8, 16") ||
		!strings.Contains(out.String(), "not predicted for 64 ranks") {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}

// TestShared: ranks of more hosts than machines share processors with others and among
// themselves, and need longer after each wait, as was measured side by side.
func TestShared(t *testing.T) {
	r := known()
	r.Hosts, r.Machines = []string{"a", "b", "c", "d"}, []string{"m", "m", "m", "m"}
	for _, c := range r.Cases {
		c.OnHosts = []int{1, 1}[:c.Ranks]
	}
	r.Model = &cost.Model{}
	r.Cases = append(r.Cases, &Case{Ranks: 4, OnHosts: []int{1, 1, 1, 1}, Batch: 32, Weak: true, Step: cost.Interval{Value: 1}})
	step := func() float64 {
		r.Checks = nil
		return extrapolated(t, r, "--predict 1 --check --fit-up-to 2").Checks[0].Predicted.Value
	}
	if us := step(); !(math.Abs(us-2*10200) <= 1) {
		t.Errorf("four ranks on two processors: %v us, want 20400", us)
	}
	r.Cases[2].Others = 0.5
	if us := step(); !(math.Abs(us-4*10200/1.5) <= 1) {
		t.Errorf("on one and a half: %v us, want 27200", us)
	}
	r.Cases[2].Others = 0
	r.Beside = []*Beside{{Ranks: 4, Group: 2, Batch: 16, turns: []float64{2*10200 + 300, 2*10200 + 410, 2*10200 + 900}, busy: []float64{1e9}, used: 10, lasted: 100}}
	r.Beside[0].summarise()
	if o := r.Beside[0]; o.Step != 20810 || o.Others != 0.1 {
		t.Errorf("side by side: %+v, want steps of 20810 us", o)
	}
	r.Beside[0].Others = 0
	// Of 41 waits, in each group one rank's, two of four ranks are woken on two processors.
	us := step()
	if o := r.Beside[0]; !(math.Abs(o.Wake-410/41.0) <= 0.01) {
		t.Errorf("side by side: %+v, want 10 us after a wait", o)
	}
	if us < 2*10200+410 || us > 2*(10200+41*10) {
		t.Errorf("with 10 us after each of 41 waits: %v us", us)
	}
	r.Machines = []string{"m", "m", "n", "n"}
	if us := step(); !(math.Abs(us-10200) <= 1) {
		t.Errorf("two machines: %v us, want 10200", us)
	}
}

// TestSharedMessages: groups of two send one message for each small collective, and four
// ranks two, in two rounds; of 4 MB, in two chunks, they send 5 and 15: headers, addends
// and results. On shared processors each costs what it takes of one, as was timed after
// computing, so what is predicted of four ranks is not what two side by side have taken.
func TestSharedMessages(t *testing.T) {
	r := known()
	r.Hosts, r.Machines = []string{"a", "b", "c", "d"}, []string{"m", "m", "m", "m"}
	for _, c := range r.Cases {
		c.OnHosts = []int{1, 1}[:c.Ranks]
	}
	r.Model = &cost.Model{Between: cost.Costs{Busy: cost.Interval{Value: 25, Low: 25, High: 25}}}
	r.Cases = append(r.Cases, &Case{Ranks: 4, OnHosts: []int{1, 1, 1, 1}, Batch: 32, Weak: true, Step: cost.Interval{Value: 1}})
	const computing = 2 * 10200 // four ranks on two processors
	o := &Beside{Ranks: 4, Group: 2, Batch: 16, Step: computing + 2*25*(40*1+5)}
	r.Beside = []*Beside{o}
	got := extrapolated(t, r, "--predict 1 --check --fit-up-to 2").Checks[0].Predicted.Value
	if o.Wake > 0.01 {
		t.Errorf("side by side: %+v, want that messages explain all", o)
	}
	if want := computing + 2*25*(40*2+15.0); !(math.Abs(got-want) <= 1) {
		t.Errorf("four ranks: %v us, want %v", got, want)
	}
	o.Step += 100
	if extrapolated(t, r, "--predict 1 --check --fit-up-to 2"); o.Wake < 1 {
		t.Errorf("side by side, 100 us more: %+v, want that waits cost something", o)
	}
}
