package collective

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestRecorderOrder: a recorder of three has the last three, oldest first, however many were
// begun, each as it was begun and has ended.
func TestRecorderOrder(t *testing.T) {
	r := NewRecorder(3)
	odd := errors.New("odd")
	x := make([]float32, 100)
	for n := range 9 {
		var want []string
		for k := max(0, n-3); k < n; k++ {
			want = append(want, fmt.Sprint(k))
		}
		var got []string
		for _, e := range r.Recent() {
			got = append(got, e.Label)
			if e.Done.IsZero() || e.Done.Before(e.Started) || (e.Err != nil) != (e.Seq%2 == 1) || fmt.Sprint(e.Seq) != e.Label {
				t.Errorf("collective %s was recorded as %+v", e.Label, e)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("of %d collectives %v are kept, want %v", n, got, want)
		}
		begun := r.Begin(uint64(n), Request{Kind: AllReduce, Op: Max, Vec: VecOf(x[:n]), Label: fmt.Sprint(n)})
		running := r.Recent()
		if e := running[len(running)-1]; !e.Done.IsZero() || !strings.HasPrefix(e.String(), fmt.Sprintf(`seq %d all-reduce max f32[%d] "%d" running since `, n, n, n)) {
			t.Errorf("the one that runs is recorded as %s", e)
		}
		r.End(begun, []error{nil, odd}[n%2])
	}
	for i, end := range []string{"took ", "failed after ", "took "} {
		if e := r.Recent()[i]; !strings.Contains(e.String(), `" `+end) {
			t.Errorf("entry %d is %s, want one that %s", i, e, end)
		}
	}
}

// TestRecorderOverlap: of collectives that run beside each other each ends by itself, in any
// order, and one that is no longer kept ends nobody else's entry.
func TestRecorderOverlap(t *testing.T) {
	r := NewRecorder(2)
	odd := errors.New("odd")
	lost := r.Begin(1, Request{Kind: Barrier, Label: "lost"})
	stream := r.Enqueue(1, Request{Kind: Barrier, Label: "stream"})
	roll := r.Begin(2, Request{Kind: Barrier, Label: "roll"})
	r.End(lost, odd)
	for _, e := range r.Recent() {
		if !e.Done.IsZero() {
			t.Errorf("%s has ended in another's place", e)
		}
	}
	r.End(roll, nil)
	r.End(stream, odd)
	kept := r.Recent()
	for i, want := range []struct {
		text string
		err  error
	}{{`enqueued 1 barrier "stream" failed after `, odd}, {`seq 2 barrier "roll" took `, nil}} {
		if e := kept[i]; !strings.HasPrefix(e.String(), want.text) || !errors.Is(e.Err, want.err) {
			t.Errorf("entry %d is %s: %v, want %s…: %v", i, e, e.Err, want.text, want.err)
		}
	}
}
