package data

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"32": {32, 32}, "28x20": {28, 20}, "0": {}, "-3": {-3, -3}, "5x5": {5, 5}} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%q, written %q, reads %+v, %v", text, got, again, err)
		}
	}
	if s := Square(7).String(); s != "7" {
		t.Errorf("a square of 7 is written %q", s)
	}
	for _, text := range []string{"", "x", "3x", "x3", "3x4x5", "3×4", "3.5", "a", " 3"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	for want, s := range map[bool][]Size{true: {{8, 256}, {9, 8}}, false: {{7, 9}, {9, 7}, {257, 9}, {9, 257}, {}}} {
		for _, s := range s {
			if s.Within(8, 256) != want {
				t.Errorf("%v within 8 and 256: %v", s, !want)
			}
		}
	}
}
