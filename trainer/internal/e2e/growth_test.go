package e2e

import (
	"testing"

	"ebtrain/trainer/run/rundir"
)

// TestNothingGrows trains a thousand small steps, with checkpoints, grids and
// comparisons of the ranks: rank 0, which does all that any rank does, needs no
// more memory at the end than after 200 steps. What a step would leave behind
// adds up: the bound is 5 KiB for each of the 800 steps. Garbage is collected
// early (GOGC), or what happens to lie uncollected at a checkpoint, as much as
// all that lives, would be most of what is measured.
func TestNothingGrows(t *testing.T) {
	long(t)
	const steps, settled, most = 1000, 200, 4 << 20
	s := newSite(t)
	s.env = append(s.env, "GOGC=10")
	s.must(on(2, tiny("a", "--steps", "1000", "--check-every", "100", "--data", "synth:train=64"))...)
	records, err := rundir.ReadMetrics(s.path("a", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != steps {
		t.Fatalf("%d steps are logged, want %d", len(records), steps)
	}
	before, after := records[settled].MemBytes, records[steps-1].MemBytes
	t.Logf("largest resident size: %d KiB after %d steps, %d KiB after %d", before>>10, settled, after>>10, steps)
	if before <= 0 || after-before > most {
		t.Errorf("the resident size grew from %d to %d bytes, want at most %d more", before, after, most)
	}
}
