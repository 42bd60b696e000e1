package rundir

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
)

// slowly is a record as encoding/json writes it.
func slowly(t *testing.T, r Record) string {
	t.Helper()
	losses := map[string]Number{}
	for name, v := range r.Losses {
		losses[name] = Number(v)
	}
	b, err := json.Marshal(line{&r.Step, r.Epoch, r.Samples, losses,
		Number(r.SamplesPerS), Number(r.StepMS), Number(r.DataMS), Number(r.CommMS), r.MemBytes, Number(r.Time)})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzRecord compares the lines with those of encoding/json, byte by byte.
func FuzzRecord(f *testing.F) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -0.1, 1e-6, 9.999e-7, 1e-7, 1.5e-10, 1e-100, 5e-324, 1e20, 1e21, -1e21, 1e300, math.MaxFloat64,
		math.NaN(), math.Inf(1), math.Inf(-1), 1.0 / 3, float64(float32(0.1))} {
		f.Add(int64(7), "energy", v, "b", -v)
	}
	for _, name := range []string{"", "a\"b", `a\b`, "<&>", "é", "\x00\n", "\xff", "\u2028", "\x7f"} {
		f.Add(int64(-1), name, 1.5, "z", 2.5)
	}
	f.Fuzz(func(t *testing.T, n int64, a string, v float64, b string, w float64) {
		r := Record{Step: n, Epoch: n / 3, Samples: -n, Losses: map[string]float64{a: v, b: w}, SamplesPerS: v, StepMS: w, DataMS: v / 3, CommMS: w * 1e9, MemBytes: n, Time: v + w}
		got, _ := appendRecord([]byte("kept"), r, []string{"old"})
		if want := "kept" + slowly(t, r); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A line costs no memory once the first is written.
func TestAppendAllocatesNothing(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "metrics.jsonl"), 0)
	defer closeMetrics(t, m)
	r := record(0)
	n := testing.AllocsPerRun(100, func() {
		if err := m.Append(r); err != nil {
			t.Fatal(err)
		}
		r.Step++
		r.StepMS *= 1.01
	})
	if n != 0 {
		t.Errorf("%v allocations for a line, want none", n)
	}
}
