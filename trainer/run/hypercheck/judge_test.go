package hypercheck

import (
	"math"
	"testing"
)

// What is allowed beyond the tolerance is little, only where rounding asks for it, and
// as much more as a step is smaller.
func TestAllowed(t *testing.T) {
	for _, tt := range [][4]float64{{1, 1, 1e-4, 1e-6}, {1, 100, 1e-4, 1e-6}, {3e5, 6, 1e-4, 2.8e-6}, {3e5, 6, 1e-6, 1.8e-4},
		{1e12, 1e-3, 1e-4, 1e-3}, {1, 0, 1e-4, 1e-3}, {math.NaN(), 1, 1e-4, 1e-3}} {
		if got := allowed(tt[0], tt[1], tt[2]); !(math.Abs(got-tt[3]) <= 0.02*tt[3]) {
			t.Errorf("J = %v with slopes of %v at a step of %v: %v, want %v", tt[0], tt[1], tt[2], got, tt[3])
		}
	}
}

// kink is where a loss bends, and by how much of its slope.
type kink struct{ at, by float64 }

// triesOf are those of a loss of that size with a slope of 1 at 0, that bends, for a
// gradient which is wrong by so much.
func triesOf(size float64, kinks []kink, wrong float64) []try {
	j := func(x float64) float64 {
		v := size + x + 3*x*x
		for _, k := range kinks {
			if past := x/k.at - 1; past > 0 {
				v += k.by * past * math.Abs(k.at)
			}
		}
		return v
	}
	var all []try
	for _, h := range steps() {
		all = append(all, try{(j(h)-j(-h))/(2*h) - 1 - wrong, allowed(size, 1, h)})
	}
	return all
}

// many are kinks that leave only the step of 1e-6 and smaller ones alone, as in losses
// of rectifiers.
var many = []kink{{2e-6, 4e-5}, {-3e-6, 1e-5}, {2e-5, 3e-4}, {-5e-5, 2e-3}, {4e-4, 1e-3}}

func TestJudge(t *testing.T) {
	for _, size := range []float64{0, 1, 1e3, 5e4} {
		for _, tt := range []struct {
			name  string
			kinks []kink
			wrong float64
			want  Verdict
		}{
			{"smooth", nil, 0, Right},
			{"kinks", many, 0, Right},
			{"1e-5 too large", nil, 1e-5, Wrong},
			{"1e-5 too small", nil, -1e-5, Wrong},
			{"too large, and far kinks", many[4:], 1e-4, Wrong},
			{"twice as large", nil, 1, Wrong},
			{"kinks at all steps", []kink{{1e-8, 2e-1}, {-3e-7, 4e-2}, {2e-6, 3e-2}, {3e-5, 1e-1}, {5e-4, 2e-1}}, 0, Unclear},
		} {
			if got, by := judge(triesOf(size, tt.kinks, tt.wrong)); got != tt.want {
				t.Errorf("J = %v, %s: %v by %+v of %.1e, want %v", size, tt.name, got, by, triesOf(size, tt.kinks, tt.wrong), tt.want)
			}
		}
	}
	nan := try{math.Inf(1), 1e-3}
	if got, _ := judge([]try{nan, nan}); got != Wrong {
		t.Errorf("no number: %v", got)
	}
}

// A network is as bad as its worst direction, and its numbers are of that one.
func TestConclude(t *testing.T) {
	n := Network{judged: []judged{{0, 3e-5, 1e-4}, {0, 1e-6, 2e-6}, {0, 0, 1e-6}}}
	if n.conclude(); n.Verdict != Right || n.Differences != 1e-6 || n.Allowed != 2e-6 {
		t.Errorf("%+v", n)
	}
	n.judged = append(n.judged, judged{float64(Unclear), 1e-5, 1e-6}, judged{float64(Wrong), 2e-6, 1e-6}, judged{float64(Wrong), 3e-6, 1e-6})
	if n.conclude(); n.Verdict != Wrong || n.Differences != 3e-6 {
		t.Errorf("%+v", n)
	}
}

// One kink that all steps but the smallest reach over makes a gradient that is right
// look wrong along a direction, and does not make it wrong: the others see that it is
// right. One that is wrong is refuted by more, and by one where there is no other.
func TestNearKink(t *testing.T) {
	const size = 1e5
	right, kinked, wrong := judgedOf(triesOf(size, nil, 0)), judgedOf(triesOf(size, []kink{{2e-6, 4e-4}}, 0)), judgedOf(triesOf(size, nil, 2e-4))
	if Verdict(kinked.verdict) != Wrong {
		t.Fatalf("%+v: the kink is told from a slope along its own direction, so this test tries nothing", kinked)
	}
	for _, tt := range []struct {
		name   string
		judged []judged
		want   Verdict
	}{
		{"a near kink", []judged{right, kinked, right}, Unclear},
		{"wrong", []judged{wrong, wrong, right}, Wrong},
		{"one direction alone", []judged{wrong}, Wrong},
		{"no number", []judged{right, judgedOf([]try{{math.Inf(1), 1e-3}}), right}, Wrong},
	} {
		n := Network{judged: tt.judged}
		if n.conclude(); n.Verdict != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, n.Verdict, tt.want)
		}
	}
}
