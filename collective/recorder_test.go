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
	r.End(errors.New("of nothing")) // before any has begun
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
		r.Begin(uint64(n), Request{Kind: AllReduce, Op: Max, Vec: VecOf(x[:n]), Label: fmt.Sprint(n)})
		running := r.Recent()
		if e := running[len(running)-1]; !e.Done.IsZero() || !strings.HasPrefix(e.String(), fmt.Sprintf(`seq %d all-reduce max f32[%d] "%d" running since `, n, n, n)) {
			t.Errorf("the one that runs is recorded as %s", e)
		}
		r.End([]error{nil, odd}[n%2])
	}
	for i, end := range []string{"took ", "failed after ", "took "} {
		if e := r.Recent()[i]; !strings.Contains(e.String(), `" `+end) {
			t.Errorf("entry %d is %s, want one that %s", i, e, end)
		}
	}
}
