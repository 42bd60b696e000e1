package simulate

import (
	"math"
	"testing"

	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// TestBusy: 7 us for each message and 2 ns for each byte that is sent are found again,
// with what two and four hosts send counted by hand.
func TestBusy(t *testing.T) {
	const head = schedule.HeaderBytes
	report := func(ranks []int, sent map[int][2]int) cost.Report {
		r := cost.Report{Collective: "all-reduce", Ranks: ranks}
		for _, bytes := range []int{256, 4 << 10, 1 << 20} {
			r.Sizes = append(r.Sizes, cost.Size{Bytes: bytes, Processor: 7*float64(sent[bytes][0]) + 2e-3*float64(sent[bytes][1])})
		}
		return r
	}
	two := report([]int{1, 1}, map[int][2]int{256: {1, 256 + head}, 4 << 10: {1, 4<<10 + head}, 1 << 20: {3, 1<<20 + head}})
	// In two rounds; or to three others a header, their quarters, and a quarter of the result.
	four := report([]int{1, 1, 1, 1}, map[int][2]int{256: {2, 2 * (256 + head)}, 4 << 10: {2, 2 * (4<<10 + head)}, 1 << 20: {9, 3*head + 6*(1<<18)}})
	for name, reports := range map[string][]cost.Report{"two hosts": {two}, "two and four": {two, four}} {
		line, err := Busy(reports)
		if err != nil || line == nil {
			t.Fatalf("%s: %v, %v", name, line, err)
		}
		if !(math.Abs(line.Latency.Value-7) <= 0.01) || !(math.Abs(line.PerByte.Value-2) <= 0.01) {
			t.Errorf("%s: %v us for a message and %v ns for a byte, want 7 and 2", name, line.Latency.Value, line.PerByte.Value)
		}
	}
	if line, err := Busy(nil); line != nil || err != nil {
		t.Errorf("of nothing: %v, %v", line, err)
	}
	alone, nobody, unknown, negative, other := two, two, two, two, two
	alone.Ranks = []int{2}
	nobody.Ranks = []int{1, 0}
	unknown.Sizes = []cost.Size{{Bytes: 256}}
	negative.Sizes = []cost.Size{{Bytes: -256, Processor: 5}}
	other.Collective = "broadcast"
	for name, r := range map[string]cost.Report{"one host": alone, "a host without ranks": nobody, "no processor time": unknown, "fewer bytes than 0": negative, "broadcasts": other} {
		if _, err := Busy([]cost.Report{r}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
