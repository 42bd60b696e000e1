package cost

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// line has times of a known line at 8 B … 64 MB, with noise of so many percent.
func line(rng *rand.Rand, alpha, beta, noise float64) []Point {
	var points []Point
	for bytes := 8; bytes <= 64<<20; bytes *= 2 {
		t := (alpha + beta*float64(bytes)) * (1 + noise/100*rng.NormFloat64())
		points = append(points, Point{bytes, t})
	}
	return points
}

func TestFitExact(t *testing.T) {
	l := Fit(line(rand.New(rand.NewPCG(1, 2)), 2.5, 1e-4, 0))
	if l == nil || !(math.Abs(l.Latency.Value-2.5) <= 1e-6) || !(math.Abs(l.PerByte.Value-0.1) <= 1e-8) || !(math.Abs(l.Bandwidth.Value-10) <= 1e-6) {
		t.Fatalf("got %+v, want 2.5 us and 10 GB/s", l)
	}
	if got := l.At(1e6); !(math.Abs(got-102.5) <= 1e-4) {
		t.Errorf("1 MB takes %v us on the line, want 102.5", got)
	}
	for i, r := range l.Residuals {
		if !(math.Abs(r) <= 1e-6) {
			t.Errorf("residual %d is %v, want 0", i, r)
		}
	}
}

// TestFitCovers draws many noisy lines, clean and with three wild sizes, and
// wants the truth within the intervals about as often as they promise.
func TestFitCovers(t *testing.T) {
	const draws = 500
	for _, wild := range []int{0, 3} {
		rng := rand.New(rand.NewPCG(7, uint64(wild)))
		var latency, perByte int
		for range draws {
			points := line(rng, 4, 2e-4, 5)
			for _, i := range rng.Perm(len(points))[:wild] {
				points[i].US *= 3 // somebody else had the processors
			}
			l := Fit(points)
			if l.Latency.Low <= 4 && 4 <= l.Latency.High {
				latency++
			}
			if l.PerByte.Low <= 0.2 && 0.2 <= l.PerByte.High {
				perByte++
			}
		}
		for what, n := range map[string]int{"latency": latency, "time of a byte": perByte} {
			share := float64(n) / draws
			t.Logf("%d wild sizes: the %s is in its interval in %.1f %%", wild, what, 100*share)
			if share < 0.87 || share > 0.995 {
				t.Errorf("%d wild sizes: the %s is in its interval in %.1f %% of draws, want about 95", wild, what, 100*share)
			}
		}
	}
}

// TestFitRobust: a wild size hardly moves the line, and stands out in the residuals.
func TestFitRobust(t *testing.T) {
	points := line(rand.New(rand.NewPCG(3, 4)), 4, 2e-4, 1)
	points[5].US *= 20
	l := Fit(points)
	if !(math.Abs(l.Latency.Value-4) <= 0.1) || !(math.Abs(l.PerByte.Value-0.2) <= 0.005) || l.Residuals[5] < 15 {
		t.Errorf("got %+v, want 4 us, 0.2 ns a byte and a residual of 19", l)
	}
}

func TestFitBounds(t *testing.T) {
	for name, points := range map[string][]Point{
		"no points": nil, "two points": {{8, 1}, {16, 2}}, "one size": {{8, 1}, {8, 2}, {8, 3}},
	} {
		if l := Fit(points); l != nil {
			t.Errorf("%s: got %+v, want no line", name, l)
		}
	}
	if l := Fit([]Point{{8, 10}, {1 << 10, 9}, {1 << 20, 8}}); l.PerByte.Value != 0 || l.Bandwidth.Value <= 0 || math.IsInf(l.Bandwidth.Value, 0) {
		t.Errorf("times that fall: got %+v, want no time for a byte and a finite bandwidth", l)
	}
	if l := Fit([]Point{{1 << 10, 1}, {1 << 20, 2000}, {1 << 21, 8000}}); l.Latency.Value < 0 || l.Latency.Low < 0 {
		t.Errorf("times that rise faster than sizes: got %+v, want no negative latency", l)
	}
}

func TestReportFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	r := Report{Version: Version, Collective: "all-reduce", World: 2, Ranks: []int{2}, Load: -1,
		Sizes: []Size{{Bytes: 8, Times: Times{Best: 1, P10: 2, Median: 3, Reps: 4}, Floor: &Times{Median: 0.5}}},
		Fit:   Fit(line(rand.New(rand.NewPCG(1, 1)), 1, 1e-4, 2))}
	var text bytes.Buffer
	if err := errors.Join(r.Encode(&text), os.WriteFile(file, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, %v, want what was written", got, err)
	}
	for text, want := range map[string]string{`{"version": 99}`: "version 99, expected 1", "[]": "is no report"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", text, err, want)
		}
	}
}

// TestUndisturbed: of times of which one third is disturbed, the other counts.
func TestUndisturbed(t *testing.T) {
	quiet, slow := slices.Repeat([]float64{10}, 10), slices.Repeat([]float64{100}, 20)
	for name, tt := range map[string]struct {
		us   []float64
		want float64
	}{
		"quiet":       {slices.Repeat([]float64{10, 11}, 15), 11},
		"at first":    {slices.Concat(slow, quiet), 10},
		"at last":     {slices.Concat(quiet, slow), 10},
		"too few":     {[]float64{10, 100, 100}, 100},
		"all of them": {slow, 100},
	} {
		if got := TimesOf(tt.us).Undisturbed(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
