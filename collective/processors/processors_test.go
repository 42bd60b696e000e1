package processors

import (
	"testing"
	"time"
)

// TestWorked reads what is known, and what is no such file.
func TestWorked(t *testing.T) {
	n, err := worked("cpu  1 20 300 4000 50000 600 7000 80000 9 9\ncpu0 1\n")
	if want := (1 + 20 + 300 + 600 + 7000 + 80000) * Tick; err != nil || n != want {
		t.Errorf("%v, %v, want %v", n, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8"} {
		if _, err := worked(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestMachine: what works is seen, as nobody's work is taken back.
func TestMachine(t *testing.T) {
	before, err := Worked()
	for end := time.Now().Add(5 * Tick); time.Now().Before(end); {
	}
	after, err2 := Worked()
	if err != nil || err2 != nil || after <= before || Load() < 0 {
		t.Errorf("%v, %v; then %v, %v; load %v", before, err, after, err2, Load())
	}
}

// TestWorkedOn: processors that are not asked for do not count; where one has no line of its own,
// all of them do.
func TestWorkedOn(t *testing.T) {
	const stat = "cpu  7 0 0 9 0 0 0 0 0 0\ncpu0 1 0 0 9 0 0 0 0 0 0\ncpu1 2 0 0 9 0 0 0 0 0 0\ncpu12 4 0 0 9 0 0 0 0 0 0\nintr 1 2 3 4 5 6 7 8 9 10\n"
	for _, c := range []struct {
		on   Set
		want time.Duration
	}{{Of(1), 2 * Tick}, {Of(0, 12), 5 * Tick}, {Of(0, 1, 12), 7 * Tick}, {Of(0, 2), 7 * Tick}} {
		if n, err := workedOn(stat, c.on); n != c.want || err != nil {
			t.Errorf("%v, %v; want %v", n, err, c.want)
		}
	}
	for _, bad := range []string{"cpu 1 2 3 4 5 6 7 8\ncpu0 1 2 x 4 5 6 7 8\n", "cpu1 1 2 3 4 5 6 7 8\n"} {
		if _, err := workedOn(bad, Of(0)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestSet: what sets have in common and together, also beyond the first 64 processors.
func TestSet(t *testing.T) {
	a, b := Of(0, 70), Of(1, 70)
	if !a.Meets(b) || a.Meets(Of(1, 2)) || a.Or(b) != Of(0, 1, 70) || a.Or(b).Count() != 3 {
		t.Errorf("%v and %v: together %v", a, b, a.Or(b))
	}
	if own, err := Allowed(); err != nil || own.Count() < 1 || Machine() == "" || Model() == "" {
		t.Errorf("allowed %v, %v; machine %q of %q", own, err, Machine(), Model())
	}
}
