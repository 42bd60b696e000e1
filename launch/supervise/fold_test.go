package supervise

import (
	"strings"
	"testing"
	"time"
)

func TestFold(t *testing.T) {
	const ms = time.Millisecond
	type in struct {
		at   time.Duration
		rank int
		text string
	}
	tests := []struct {
		name  string
		ranks int
		in    []in
		want  string // lines taken, those taken together joined by ';', moments by '|'
	}{
		{"all ranks", 3, []in{{0, 0, "a"}, {ms, 2, "a"}, {2 * ms, 1, "a"}}, "[0-2] a"},
		{"one rank needs no wait", 1, []in{{0, 0, "a"}, {0, 0, "a"}}, "[0] a|[0] a"},
		{"a rank is missing", 3, []in{{0, 0, "a"}, {ms, 2, "a"}, {foldWindow, 1, "b"}}, "[0,2] a|[1] b"},
		{"different lines first", 2, []in{{0, 0, "x0"}, {0, 0, "a"}, {0, 1, "x1"}, {0, 1, "a"}}, "[1] x1;[0] x0;[0-1] a"},
		{"the order of each rank is kept", 2, []in{{0, 0, "a"}, {0, 0, "b"}, {0, 1, "b"}, {0, 1, "a"}}, "[0] a;[0-1] b;[1] a"},
		{"a rank repeats itself", 2, []in{{0, 0, "a"}, {0, 0, "a"}, {0, 1, "a"}, {0, 1, "a"}}, "[0-1] a|[0-1] a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := fold{ranks: tt.ranks}
			start := time.Now()
			var got []string
			take := func(now time.Time, all bool) {
				var lines []string
				for _, e := range f.take(now, all) {
					lines = append(lines, prefix(e.ranks)+" "+e.text)
				}
				if lines != nil {
					got = append(got, strings.Join(lines, ";"))
				}
			}
			for _, i := range tt.in {
				take(start.Add(i.at), false)
				f.add(i.rank, stdout, i.text, start.Add(i.at))
				take(start.Add(i.at), false)
			}
			take(start.Add(time.Hour), false)
			if s := strings.Join(got, "|"); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

// A line never waits longer than foldWindow, whatever others write meanwhile.
func TestFoldNeverStarves(t *testing.T) {
	f := fold{ranks: 3}
	start := time.Now()
	f.add(0, stdout, "old", start)
	for i := range 10 {
		f.add(1, stdout, strings.Repeat("x", i), start.Add(time.Duration(i)*foldWindow/11))
	}
	for _, e := range f.take(start.Add(foldWindow), false) {
		if e.text == "old" {
			return
		}
	}
	t.Error("the old line still waits")
}

func TestStreamsAreNotMixed(t *testing.T) {
	f := fold{ranks: 2}
	f.add(0, stdout, "a", time.Now())
	f.add(1, stderr, "a", time.Now())
	if got := f.take(time.Now(), true); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestPrefix(t *testing.T) {
	for want, in := range map[string][]int{"[0]": {0}, "[0-3]": {2, 0, 1, 3}, "[0,2-3,7]": {7, 3, 0, 2}, "[9-10]": {10, 9}} {
		if got := prefix(in); got != want {
			t.Errorf("prefix(%v) = %q, want %q", in, got, want)
		}
	}
}
