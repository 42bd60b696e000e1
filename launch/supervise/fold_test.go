package supervise

import (
	"math/rand/v2"
	"strconv"
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
		{"different lines first", 2, []in{{0, 0, "x0"}, {0, 0, "a"}, {0, 1, "x1"}, {0, 1, "a"}}, "[0] x0;[1] x1;[0-1] a"},
		{"the order of each rank is kept", 2, []in{{0, 0, "a"}, {0, 0, "b"}, {0, 1, "b"}, {0, 1, "a"}}, "[0] a;[0-1] b;[1] a"},
		{"moved with what follows", 2, []in{{0, 0, "x0"}, {0, 0, "a"}, {0, 0, "b"}, {0, 1, "x1"}, {0, 1, "a"}, {0, 1, "b"}}, "[0] x0;[1] x1;[0-1] a;[0-1] b"},
		{"met again after detours", 2, []in{{0, 1, "r"}, {0, 1, "s"}, {0, 1, "done"}, {0, 0, "x"}, {0, 0, "y"}, {0, 0, "done"}}, "[1] r;[1] s;[0] x;[0] y;[0-1] done"},
		{"nothing overtakes the launcher", 2, []in{{0, 0, "a"}, {0, launcher, "note"}, {0, 1, "a"}}, "[0] a;[-1] note;[1] a"},
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
				if i.rank == launcher {
					f.say(i.text, start.Add(i.at))
				} else {
					f.add(i.rank, stdout, i.text, start.Add(i.at))
				}
				take(start.Add(i.at), false)
			}
			take(start.Add(time.Hour), false)
			if s := strings.Join(got, "|"); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

// Whatever the ranks write, each rank's lines come out whole and in order.
func TestFoldKeepsEveryRanksOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		f := fold{ranks: 3}
		var wrote, read [3]string
		var now time.Time
		collect := func(es []folded) {
			for _, e := range es {
				for _, r := range e.ranks {
					read[r] += e.text
				}
			}
		}
		for range 60 {
			r, text := rng.IntN(3), string(rune('a'+rng.IntN(4)))
			now = now.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
			wrote[r] += text
			f.add(r, stdout, text, now)
			for _, e := range f.queue {
				if e.deadline.After(now.Add(foldWindow)) {
					t.Fatalf("%+v waits too long", e)
				}
			}
			collect(f.take(now, false))
			for _, e := range f.queue {
				if !e.deadline.After(now) {
					t.Fatalf("%+v still waits at %v", e, now)
				}
			}
		}
		if collect(f.take(now, true)); read != wrote {
			t.Fatalf("wrote %q, read %q", wrote, read)
		}
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

// A flood is passed on as it comes: no more lines wait than maxHeld.
func TestFoldFlood(t *testing.T) {
	f := fold{ranks: 2}
	now := time.Now()
	for i := range maxHeld + 1 {
		if got := f.take(now, false); len(got) > 0 {
			t.Fatalf("%d lines are not held", i)
		}
		f.add(0, stdout, strconv.Itoa(i), now)
	}
	if got := f.take(now, false); len(got) != maxHeld+1 {
		t.Errorf("%d lines come", len(got))
	}
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

// When the job ends, what the ranks say is one line, also if one is slow to say
// it.
func TestFoldAtTheEnd(t *testing.T) {
	f := fold{ranks: 3, ending: true}
	now := time.Now()
	f.add(1, stderr, "why", now)
	if got := f.take(now.Add(2*foldWindow), false); len(got) != 0 {
		t.Errorf("got %v at once", got)
	}
	f.add(0, stderr, "why", now.Add(3*foldWindow))
	if got := f.take(now.Add(lastWindow), false); len(got) != 1 || prefix(got[0].ranks) != "[0-1]" {
		t.Errorf("got %v", got)
	}
}
