package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"ebtrain/collective/cost"
	"ebtrain/collective/processors"
)

// TestBurn: a processor is kept busy until it is told otherwise, whichever is asked for.
func TestBurn(t *testing.T) {
	for _, n := range []int{0, 1 << 20} {
		had, stop := processors.Own(), burn(n)
		for begun := time.Now(); processors.Own()-had < 20*time.Millisecond; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatal("it has had less than 20 ms of a processor in a minute")
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestFitBusy: what was timed beside busy processors is in the model, and what was timed
// at too few sizes is said to be unknown.
func TestFitBusy(t *testing.T) {
	r := known()
	r.Busy = []cost.Report{{Collective: "all-reduce", Ranks: []int{1, 1}}}
	for _, bytes := range []int{256, 4 << 10, 32 << 10} { // a message of each, with its header
		r.Busy[0].Sizes = append(r.Busy[0].Sizes, cost.Size{Bytes: bytes, Processor: 5 + 1e-3*float64(bytes+128)})
	}
	if err := r.fitBusy(); err != nil {
		t.Fatal(err)
	}
	if b := r.Model.Between; !(math.Abs(b.Busy.Value-5) <= 0.01) || !(math.Abs(b.BusyPerByte.Value-1) <= 0.01) {
		t.Errorf("%v us for a message and %v ns for a byte, want 5 and 1", b.Busy.Value, b.BusyPerByte.Value)
	}
	r = known()
	r.Busy = []cost.Report{{Collective: "all-reduce", Ranks: []int{1, 1}, Sizes: []cost.Size{{Bytes: 256, Processor: 5}}}}
	if err := r.fitBusy(); err != nil {
		t.Fatal(err)
	}
	if len(r.Unmeasured) != 1 || !strings.Contains(r.Unmeasured[0], "--fit-time") || r.Model.Between.Busy.Value != 0 {
		t.Errorf("one size: %q, and %+v", r.Unmeasured, r.Model.Between.Busy)
	}
}
