package loader

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
)

// leavingOut is a loader's setting of sentences whose damage is left out.
func leavingOut(batch int) Config {
	c := textBase()
	c.Batch, c.Quarantine = batch, func(*data.CorruptError) {}
	return c
}

// stored is a state as a checkpoint brings it back.
func stored(t *testing.T, s State) (back State) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// Damage that is met while running: whoever goes on from a state that knows of it has
// the same batches as without an interruption, also where it has been mended since.
func TestSentencesResumeAfterDamage(t *testing.T) {
	const steps = 40
	for _, early := range []int{-1, 7} { // a block that cannot be read from the begin on
		c := leavingOut(8)
		src := sentences()
		if early >= 0 {
			src.bad[early] = true
		}
		l, err := New(src, c)
		if err != nil {
			t.Fatal(err)
		}
		src.bad[3] = true
		var states []State
		var want [][]int64
		for range steps {
			states = append(states, l.State())
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, slices.Clone(b.Indices))
		}
		known := 0
		for at, s := range states {
			if !slices.Contains(s.Quarantine, 3) {
				continue
			}
			known++
			for _, mended := range []bool{false, true} {
				now := sentences()
				if !mended {
					now = src
				}
				c.World = []int{1, 2, 4, 8}[at%4]
				got := spoken(t, now, c, new(stored(t, s)), steps-at, nil)
				for i, b := range got {
					if !slices.Equal(b.Indices, want[at+i]) {
						t.Fatalf("early %d, mended %v, resumed at step %d: step %d has %v, without the interruption %v", early, mended, at, at+i, b.Indices, want[at+i])
					}
				}
			}
		}
		if known < steps/2 {
			t.Errorf("%d states know of the damage", known)
		}
	}
}

// Damage that is found when a run goes on costs its sentences and no other: none that
// waited is lost, none that was given out comes again.
func TestSentencesResumeFindsDamage(t *testing.T) {
	for _, batch := range []int{8, 24} {
		const steps = 20
		c := leavingOut(batch)
		var states []State
		before := spoken(t, sentences(), c, nil, steps, &states)
		for at, s := range states {
			if testing.Short() && at%10 != 3 {
				continue // the same code
			}
			for block := range 14 {
				src := sentences()
				src.bad[block] = true
				span := src.layout.Spans()[block]
				lost := func(i int64) bool { return i >= span.First && i < span.First+int64(span.N) }
				var end []State
				after := spoken(t, src, c, new(stored(t, s)), steps+1, &end)
				counts := counted(map[int64]int{}, after[:steps])
				for i := range counts {
					if lost(i) {
						t.Fatalf("batch %d, block %d, resumed at step %d: sentence %d of the damaged block", batch, block, at, i)
					}
				}
				counts = counted(counts, before[:at])
				wait, passed := looked(t, src, c, end[steps])
				for i := range int64(101) {
					if n := counts[i] + wait[i]; !lost(i) && n != passed[i] {
						t.Fatalf("batch %d, block %d, resumed at step %d: sentence %d came or waits %d times, the stream has passed it %d times",
							batch, block, at, i, n, passed[i])
					}
				}
			}
		}
	}
}

// looked counts, at a state, the sentences that wait and how often each was passed.
func looked(t *testing.T, src data.Source, c Config, s State) (wait, passed map[int64]int) {
	t.Helper()
	l, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(s); err != nil {
		t.Fatal(err)
	}
	index := func(p place) int64 { return l.fill.spans[p.block].First + int64(p.in) }
	wait, passed = map[int64]int{}, map[int64]int{}
	for _, q := range l.fill.line.queues {
		for _, w := range q {
			wait[index(w.place)]++
		}
	}
	for i := range l.Len() {
		passed[i] = int(s.Epoch)
	}
	o := l.fill.order(s.Epoch)
	for pos := range s.Position {
		passed[index(o.at(pos))]++
	}
	return wait, passed
}

// States of versions that did not say where the oldest waits are read: as exactly as
// ever where nothing is damaged, and without an error where something is.
func TestSentencesResumeFromOldStates(t *testing.T) {
	c := leavingOut(24)
	var states []State
	want := spoken(t, sentences(), c, nil, 20, &states)
	for at, s := range states {
		s.Since, s.Buckets = nil, nil
		if got := spoken(t, sentences(), c, &s, 20-at, nil); !reflect.DeepEqual(got, want[at:]) {
			t.Fatalf("resuming at step %d gives another stream", at)
		}
		for block := range 14 {
			src := sentences()
			src.bad[block] = true
			spoken(t, src, c, &s, 3, nil)
		}
	}
}

func TestSentencesRestoreRefusesBuckets(t *testing.T) {
	c := leavingOut(8)
	l, err := New(sentences(), c)
	if err != nil {
		t.Fatal(err)
	}
	good := l.State()
	for _, tt := range []struct {
		buckets map[int]string
		since   [][2]int64
		want    string
	}{
		{map[int]string{14: ""}, nil, "buckets of block 14, expected 0 to 13"},
		{map[int]string{3: "012"}, nil, `buckets "012" of block 3, expected a digit from 0 to 2 for each of its 8 sentences`},
		{map[int]string{3: "01201203"}, nil, `buckets "01201203" of block 3`},
		{nil, [][2]int64{{0, 0}}, "the state says of 1 buckets since when sentences wait, and the sentences have 3"},
		{nil, [][2]int64{{0, 0}, {0, 101}, {0, 0}}, "epoch 0, position 101"},
		{nil, [][2]int64{{0, 0}, {0, 0}, {-1, 0}}, "epoch -1, position 0"},
	} {
		s := good
		s.Buckets = maps.Clone(tt.buckets)
		if tt.since != nil {
			s.Since = tt.since
		}
		if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt, err, tt.want)
		}
	}
	all := map[int]string{}
	for b := range 14 {
		all[b] = ""
	}
	s := good
	s.Buckets = all
	if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), "no sentence can be read") {
		t.Errorf("all unread: %v", err)
	}
}
