package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
)

// shared is a report of two ranks with a processor each, whose 20 collectives wait for a
// link of 400 us; of eight such hosts on the same two processors, which is to be
// predicted; and of four pairs of them side by side, if waits cost so much.
func shared(t *testing.T, wake, delay float64) *Report {
	t.Helper()
	r := known()
	r.Hosts, r.Machines = strings.Split("abcdefgh", ""), strings.Split("mmmmmmmm", "")
	c := r.Cases[1]
	c.OnHosts, c.Compute, c.Noise, c.Data, c.Events = []int{1, 1}, 2000, []float64{0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.4}, 0, nil
	for i := range 20 {
		c.Events = append(c.Events, simulate.Event{Kind: simulate.Compute, US: 100},
			simulate.Event{Kind: simulate.Start, Collective: i, Bytes: 512, Label: batchNorm}, simulate.Event{Kind: simulate.Wait, Collective: i})
	}
	exact := func(v float64) cost.Interval { return cost.Interval{Value: v, Low: v, High: v} }
	r.Model.Between = cost.Costs{Latency: exact(400), Busy: exact(10)}
	r.Cases = append(r.Cases, &Case{Ranks: 8, OnHosts: []int{1, 1, 1, 1, 1, 1, 1, 1}, Batch: 64, Weak: true, Step: exact(1)})
	all := simulate.Cluster{Ranks: []int{1, 1}, Cores: 2, Together: 2, Wired: true, Beside: 4, Wake: wake, Delay: delay, Costs: *r.Model}
	s, err := simulate.Run(t.Context(), all, simulate.Step{Events: c.Events}, simulate.Noise{Ratios: c.Noise}, 100, 77)
	if err != nil {
		t.Fatal(err)
	}
	r.Beside = []*Beside{{Ranks: 8, Group: 2, Batch: 16, Step: s.Median, Busy: s.Processor}}
	return r
}

// predicted is the step of eight ranks.
func predicted(t *testing.T, r *Report) float64 {
	t.Helper()
	r.Checks = nil
	return extrapolated(t, r, "--predict 1 --check --fit-up-to 2").Checks[0].Predicted.Value
}

// TestWaits: both parts of what a wait costs are found again in steps that were played
// with other draws, and eight ranks are predicted as they are played.
func TestWaits(t *testing.T) {
	simulates(t)
	for _, want := range []struct{ wake, delay float64 }{{40, 150}, {0, 0}, {60, 0}, {0, 250}} {
		r := shared(t, want.wake, want.delay)
		got := predicted(t, r)
		o := r.Beside[0]
		if !(math.Abs(o.Wake-want.wake) <= 6) || !(math.Abs(o.Delay-want.delay) <= 15) {
			t.Errorf("a wait is fitted to cost %v us of a processor and %v us more, want %v and %v", o.Wake, o.Delay, want.wake, want.delay)
		}
		all := simulate.Cluster{Ranks: r.Cases[2].OnHosts, Cores: 2, Together: 8, Wired: true, Wake: want.wake, Delay: want.delay, Costs: *r.Model}
		s, err := simulate.Run(t.Context(), all, simulate.Step{Events: r.Cases[1].Events}, simulate.Noise{Ratios: r.Cases[1].Noise}, 100, 78)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(got/s.Median-1) <= 0.05) {
			t.Errorf("%+v: eight ranks are predicted to take %v us and take %v", want, got, s.Median)
		}
	}
}

// onOne has the ranks of a report on one host, where all wait as long and wake together,
// and compute little.
func onOne(r *Report) {
	r.Hosts, r.Machines = strings.Split("aaaaaaaa", ""), nil
	r.Cases[1].OnHosts, r.Cases[2].OnHosts, r.Cases[1].Compute = []int{2}, []int{8}, 400
	for i := range r.Cases[1].Events {
		r.Cases[1].Events[i].US /= 5
	}
	r.Model.Within.Latency = r.Model.Between.Latency
	r.Beside[0].Step = 20 * (400 + 20 + 150)
}

// TestWaitsEither: the same steps of groups side by side, of which processor time says
// that waits cost nothing of it, or all, or more than all. More ranks than processors
// are predicted to take longer where it is processor time, and as many the same.
func TestWaitsEither(t *testing.T) {
	simulates(t)
	either := func(cores int, busy, among float64) (us float64, o *Beside) {
		r := shared(t, 0, 0)
		onOne(r)
		r.Cores, r.Beside[0].Busy, r.AmongBusy = cores, busy, among
		return predicted(t, r), r.Beside[0]
	}
	late, delay := either(2, 1, 0)
	slow, wake := either(2, 1e6, 0)
	if delay.Wake != 0 || delay.Delay < 100 || wake.Delay != 0 || wake.Wake < 50 {
		t.Fatalf("without processor time %+v, with much of it %+v", delay, wake)
	}
	if slow < 1.1*late {
		t.Errorf("eight ranks are predicted to take %v us where waits cost processor time, %v where they do not, want more than 10 %% between", slow, late)
	}
	if same, o := either(2, 1e6, 1); same != late || o.Delay != delay.Delay {
		t.Errorf("what ranks looked for is processor time: %v us with %+v, want %v", same, o, late)
	}
	if same, o := either(2, 0, 0); same != slow || o.Wake != wake.Wake {
		t.Errorf("a report without processor time: %v us with %+v, want %v", same, o, slow)
	}
	a, _ := either(8, 1, 0)
	b, _ := either(8, 1e6, 0)
	if a != b {
		t.Errorf("with a processor for each: %v and %v us, want the same", a, b)
	}
}

// TestWaitOf: what a wait costs is that of the nearest number of ranks that was measured and
// is no larger, or of the smallest.
func TestWaitOf(t *testing.T) {
	r := &Report{Beside: []*Beside{{Ranks: 4, Wake: 1, Delay: 10}, {Ranks: 8, Wake: 2, Delay: 20}}}
	for ranks, want := range map[int]float64{2: 1, 4: 1, 6: 1, 8: 2, 16: 2} {
		if wake, delay := r.wait(&Case{Ranks: ranks}); wake != want || delay != 10*want {
			t.Errorf("%d ranks: %v and %v", ranks, wake, delay)
		}
	}
	if wake, delay := new(Report).wait(&Case{Ranks: 2}); wake != 0 || delay != 0 {
		t.Errorf("of nothing: %v and %v", wake, delay)
	}
}

// TestWaitsTold: the table has both parts, and says what tells them apart.
func TestWaitsTold(t *testing.T) {
	for want, change := range map[string]func(*Report){
		"The first is what a rank had of them beyond":  func(r *Report) { r.AmongBusy = 3000 },
		"The first may be too much: this report is of": func(*Report) {},
		"this report does not say what ranks had":      func(r *Report) { r.Beside[0].Busy = 0 },
		"of ranks with several threads nothing tells":  func(r *Report) { r.Threads, r.AmongBusy = 2, 3000 },
	} {
		r := shared(t, 0, 0)
		r.Beside[0].Wake, r.Beside[0].Delay = 12.34, 56.78
		change(r)
		var out strings.Builder
		if err := r.printPredictions(&out); err != nil || !strings.Contains(out.String(), want) || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), " 12.3 56.8 ") {
			t.Errorf("%v, no %q or no costs in\n%s", err, want, out.String())
		}
	}
}

// TestOldWaits: a report of version 1 is read, fitted anew with what it has, and is one of
// this version when it is written. Times that cannot be are refused.
func TestOldWaits(t *testing.T) {
	simulates(t)
	dir := t.TempDir()
	file, later := filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json")
	save := func(change func(*Report)) {
		r := shared(t, 40, 150)
		r.Beside[0].Wake, r.Version = 500, 1
		change(r)
		if err := r.write(file); err != nil {
			t.Fatal(err)
		}
	}
	save(func(*Report) {})
	out, err := runs(t, "--from "+file+" --predict 16 --json "+later)
	if err != nil || !strings.Contains(out, "The first may be too much") {
		t.Errorf("%v, printed\n%s", err, out)
	}
	r, err := read(later)
	if err != nil || r.Version != Version || !(math.Abs(r.Beside[0].Wake-40) <= 6) || !(math.Abs(r.Beside[0].Delay-150) <= 15) {
		t.Errorf("%v, %+v", err, r)
	}
	for want, change := range map[string]func(*Report){
		"step_us of 8 ranks side by side is -1":      func(r *Report) { r.Beside[0].Step = -1 },
		"processor_us of 8 ranks side by side is -2": func(r *Report) { r.Beside[0].Busy = -2 },
		"wake_us of 8 ranks side by side is -3":      func(r *Report) { r.Beside[0].Wake = -3 },
		"delay_us of 8 ranks side by side is -4":     func(r *Report) { r.Beside[0].Delay = -4 },
		"others of 8 ranks side by side is -5":       func(r *Report) { r.Beside[0].Others = -5 },
		"processor_among_busy_us is -6":              func(r *Report) { r.AmongBusy = -6 },
		"groups of 0":                                func(r *Report) { r.Beside[0].Group = 0 },
		"is null":                                    func(r *Report) { r.Beside[0] = nil },
	} {
		save(change)
		if _, err := runs(t, "--from "+file+" --predict 16"); err == nil || !strings.Contains(err.Error(), "damaged report: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want one line with %q", err, want)
		}
	}
	nan := &Report{Beside: []*Beside{{Ranks: 8, Group: 2, Batch: 16, Delay: math.NaN()}}}
	if err := nan.checkWaits(); err == nil || !strings.Contains(err.Error(), "delay_us of 8 ranks side by side is NaN") {
		t.Errorf("a delay of NaN: %v", err)
	}
	text, err := json.Marshal(shared(t, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"delay_us":0`, `"delay_us":NaN`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runs(t, "--from "+file+" --predict 16"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a file with NaN: %v", err)
	}
}
