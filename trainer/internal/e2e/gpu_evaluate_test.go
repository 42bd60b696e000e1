package e2e

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestGPUEvaluates measures two checkpoints on a GPU, which is opened for each: the numbers
// are those of the CPU, to rounding.
func TestGPUEvaluates(t *testing.T) {
	long(t)
	s := newSite(t).withGPUs(1)
	s.must(tiny("run", "--device", "cpu", "--samples", "0", "--steps", "4", "--ckpt-every", "2", "--ckpt-keep", "0")...)
	type row struct {
		Step int
		RMSE float64
	}
	measure := func(device string) (rows []row) {
		out := s.must("evaluate", "--run", "run", "--step", "all", "--device", device, "--threads", "1", "--data", "synth:train=16,test=8", "--batch", "8", "--measures", "rmse", "--picture", "none", "--json").stdout
		for line := range strings.Lines(out) {
			var r row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			rows = append(rows, r)
		}
		return rows
	}
	want, got := measure("cpu"), measure("cuda")
	if len(want) != 2 || len(got) != 2 || want[0].Step != 2 || want[1].Step != 4 || want[0].RMSE == want[1].RMSE {
		t.Fatalf("want two checkpoints of each device, of other numbers, got %v and %v", want, got)
	}
	for i := range want {
		if got[i].Step != want[i].Step || !(math.Abs(got[i].RMSE/want[i].RMSE-1) <= 1e-4) {
			t.Errorf("on a GPU got %v, want %v", got[i], want[i])
		}
	}
}
