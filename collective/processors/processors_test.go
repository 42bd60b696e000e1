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
