package distance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// affinities are the processors that each thread of this process may use, as the kernel
// writes them, without repetitions.
func affinities(t *testing.T) (lists []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("threads of this process: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(list, "\n")
		lists = append(lists, strings.TrimSpace(list))
	}
	slices.Sort(lists)
	return slices.Compact(lists)
}

// What is measured is positive and in order, and every thread may run where it might.
func TestMeasure(t *testing.T) {
	before := affinities(t)
	d, err := Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after := affinities(t); !slices.Equal(after, before) {
		t.Errorf("threads may run on %q, before on %q", after, before)
	}
	if d.Processors < 1 || d.Measured < 1 || d.Measured > min(most, d.Processors) {
		t.Errorf("%d of %d processors", d.Measured, d.Processors)
	}
	if known := d.Nearest > 0 && d.Farthest >= d.Nearest; known != (d.Missing == "") {
		t.Errorf("got %+v, want 0 < nearest <= farthest, or what is missing", d)
	}
	t.Log(d)
}

// bound runs f on a thread that may use one processor only.
func bound(t *testing.T, f func(cpu int)) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever
		var set unix.CPUSet
		err := unix.SchedGetaffinity(0, &set)
		cpu := processors(&set)[0]
		if err == nil {
			err = on(cpu, func() { f(cpu) })
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// With one processor there is nothing to measure, and that is said.
func TestOneProcessor(t *testing.T) {
	bound(t, func(int) {
		d, err := Measure(t.Context())
		if want := (Distances{Processors: 1, Measured: 1, Missing: "no two can run at a time"}); d != want || err != nil {
			t.Errorf("got %+v, %v; want %+v", d, err, want)
		}
		if got, want := d.String(), "1, not measured how far apart: no two can run at a time"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// on has its thread on that processor alone, and gives it back.
func TestOn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, within, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpus := processors(&before)
	for _, cpu := range cpus {
		var asked error
		err := on(cpu, func() { asked = unix.SchedGetaffinity(0, &within) })
		if err := errors.Join(err, asked, unix.SchedGetaffinity(0, &after)); err != nil {
			t.Fatal(err)
		}
		if got := processors(&within); !slices.Equal(got, []int{cpu}) {
			t.Errorf("on processor %d a thread may use %v", cpu, got)
		}
		if after != before {
			t.Errorf("after processor %d a thread may use %v, before %v", cpu, processors(&after), cpus)
		}
	}
	var none int
	if err := on(1<<10-1, func() { none++ }); err == nil || none > 0 {
		t.Errorf("processor 1023: %v, run %d times; want an error: there is none", err, none)
	}
}

// Every ball is returned, in turn.
func TestRallies(t *testing.T) {
	c := &court{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.answer()
	}()
	const n = 2 // on one processor a ball takes a slice of the scheduler's
	best := c.serve(t.Context(), n, time.Now().Add(time.Minute))
	c.over.Store(true)
	<-done
	if got, want := c.ball.Load(), uint64(2*n*returns); got != want || !(best > 0) {
		t.Errorf("the ball flew %d times, want %d; the best time is %v ns, want more than 0", got, want, best)
	}
}

// Who is told to stop stops, without a result and with the reason.
func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	before := affinities(t)
	if d, err := Measure(ctx); !errors.Is(err, why) || d.Nearest != 0 {
		t.Errorf("got %+v, %v; want %v", d, err, why)
	}
	if after := affinities(t); !slices.Equal(after, before) {
		t.Errorf("threads may run on %q, before on %q", after, before)
	}
	// One who waits for a ball that does not come notices it, and one who is late.
	if best := (&court{}).serve(ctx, 1, time.Now().Add(time.Hour)); best != 0 {
		t.Errorf("got %v ns from nobody", best)
	}
	if best := (&court{}).serve(t.Context(), 1, time.Now().Add(time.Millisecond)); best != 0 {
		t.Errorf("got %v ns from nobody", best)
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		processors, measured int
		pairs                []float64
		want                 string
	}{
		{2, 2, []float64{26.4}, "2, 26 ns apart"},
		{3, 3, []float64{155, 26.4, 160.2}, "3, 26 to 160 ns apart"},
		{64, 3, []float64{155, 26.4, 160.2}, "3 of 64, 26 to 160 ns apart"},
		{3, 3, []float64{0, 26.4, 160.2}, "3, 26 to 160 ns apart (1 pair(s) never ran side by side)"},
		{3, 3, []float64{0, 0, 0}, "3, not measured how far apart: no two ever ran side by side, so busy were they"},
	} {
		d := Distances{Processors: tt.processors, Measured: tt.measured}
		if d.of(tt.pairs); d.String() != tt.want {
			t.Errorf("got %q, want %q", d, tt.want)
		}
	}
}

// Two looks are wider than each; one that saw nothing takes nothing away.
func TestAnd(t *testing.T) {
	near := Distances{Processors: 2, Measured: 2, Nearest: 26, Farthest: 30, Unmet: 1}
	far := Distances{Processors: 2, Measured: 2, Nearest: 150, Farthest: 160}
	none := Distances{Processors: 2, Measured: 2, Missing: "why"}
	both := Distances{Processors: 2, Measured: 2, Nearest: 26, Farthest: 160}
	for _, tt := range []struct{ a, b, want Distances }{
		{near, far, both}, {far, near, both}, {near, none, near}, {none, far, far}, {none, none, none},
	} {
		if got := tt.a.And(tt.b); got != tt.want {
			t.Errorf("%+v and %+v: got %+v, want %+v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestSpread(t *testing.T) {
	var all []int
	for cpu := range 64 {
		all = append(all, cpu)
	}
	for _, tt := range []struct {
		cpus []int
		n    int
		want []int
	}{
		{[]int{4}, 8, []int{4}},
		{[]int{0, 3, 5}, 8, []int{0, 3, 5}},
		{[]int{0, 3, 5, 9}, 2, []int{0, 9}},
		{all, 8, []int{0, 9, 18, 27, 36, 45, 54, 63}},
	} {
		if got := spread(tt.cpus, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v: got %v, want %v", tt.n, tt.cpus, got, tt.want)
		}
	}
	if got, want := pairsOf([]int{0, 3, 5}), [][2]int{{0, 3}, {0, 5}, {3, 5}}; !slices.Equal(got, want) {
		t.Errorf("pairs %v, want %v", got, want)
	}
}
