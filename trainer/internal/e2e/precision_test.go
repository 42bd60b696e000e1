package e2e

import (
	"slices"
	"strings"
	"testing"
)

// How far runs in bfloat16 may be apart, relative to 1 + |loss|: from float32,
// and from runs on other numbers of ranks, where a difference in the last bit
// of a float32 becomes one of 2⁻⁹ if it moves a number over the middle between
// two of bfloat16. The first step shows that rounding (1.6e-3 and 7e-5 were
// seen). What follows is Adam's: its first steps move a weight by the sign of
// its gradient, so one near 0 goes the other way. The losses of this tiny net
// were 0.07 and 0.05 apart after that.
const (
	firstBF16 = 0.01
	laterBF16 = 0.25
)

// TestBF16 trains in bfloat16: again, on two ranks, and against float32. A run
// keeps its precision when it is resumed; sample and evaluate need not know.
func TestBF16(t *testing.T) {
	long(t)
	s := newSite(t)
	args := func(out string, more ...string) []string {
		return tiny(out, append([]string{"--steps", "10", "--ckpt-every", "5", "--samples", "0"}, more...)...)
	}
	e := s.run(args("half", "--precision", "bf16")...)
	if strings.HasPrefix(e.stderr, "train: --precision bf16: cpu: no bf16: ") {
		t.Skip(e.stderr)
	} else if e.code != 0 {
		t.Fatal(e)
	}
	s.must(args("again", "--precision", "bf16")...)
	s.sameFiles("half/ckpt", "again/ckpt")

	s.must(args("full")...)
	s.must(on(2, args("two", "--precision", "bf16"))...)
	for _, other := range []string{"full", "two"} {
		d := s.apart("half", other)
		t.Logf("half and %s are apart by %.1e at the first step, by %.1e at most", other, d[0], slices.Max(d))
		// Plain Go rounds only where that is faster: not in a net as small as this.
		if other == "full" && slices.Max(d) == 0 && strings.Contains(e.String(), "oneDNN") {
			t.Error("bf16 computes what f32 does")
		}
		if !(d[0] <= firstBF16 && slices.Max(d) <= laterBF16) {
			t.Errorf("half and %s are apart by %v, want %v at the first step and %v after", other, d, firstBF16, laterBF16)
		}
	}

	if e := s.run(args("half", "--resume", "--precision", "f32")...); e.code != 2 || !strings.Contains(e.stderr, "has --precision bf16, not --precision f32") {
		t.Errorf("resumed in float32: want a refusal that names the precision, got %v", e)
	}
	s.must("train", "--resume", "--out", "half", "--steps", "11")
	s.must("sample", "--run", "half", "--n", "4", "--out", "grid.png")
}
