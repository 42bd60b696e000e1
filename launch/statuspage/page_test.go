package statuspage

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

func newPair(t testing.TB) (launcher, worker *Page) {
	t.Helper()
	launcher, f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, f)
	worker, err = Open(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launcher.Close(); _ = worker.Close() })
	return launcher, worker
}

func TestWriteRead(t *testing.T) {
	launcher, worker := newPair(t)
	if r, ok := launcher.Read(); ok {
		t.Errorf("a fresh page holds %+v", r)
	}
	for i, want := range []Report{
		{Step: 41, Phase: "all-reduce", Seq: 8812, Label: "generator/bucket 3"},
		{Step: -1, Phase: "load"},
		{},
		{Step: 1, Phase: strings.Repeat("p", phaseBytes), Seq: 1 << 63, Label: strings.Repeat("l", labelBytes)},
	} {
		worker.Write(want)
		if got, ok := launcher.Read(); !ok || got != want {
			t.Errorf("write %d: got %+v, %v, want %+v", i, got, ok, want)
		}
	}
}

func TestWidth(t *testing.T) {
	launcher, worker := newPair(t)
	if n := worker.Width(); n != 0 {
		t.Errorf("a fresh page says %d columns", n)
	}
	for _, n := range []int{120, 40, 0} {
		launcher.SetWidth(n)
		worker.Write(Report{Phase: "step"}) // reports leave it alone
		if got := worker.Width(); got != n {
			t.Errorf("the rank reads %d columns, want %d", got, n)
		}
	}
	if err := worker.Close(); err != nil || worker.Width() != 0 {
		t.Errorf("a closed page: %d columns, %v", worker.Width(), err)
	}
}

// What a rank has begun and ended is counted by kind, and is not a report.
func TestCounts(t *testing.T) {
	launcher, worker := newPair(t)
	worker.Began(Collectives, 9)
	worker.Ended(Collectives, 8)
	worker.Began(Exchanges, 3)
	worker.Ended(Exchanges, 3)
	worker.Write(Report{Phase: "step"})
	worker.SetWidth(80)
	if got, want := launcher.Counts(), (Counts{Reports: 1, Met: [2]Meetings{{9, 8}, {3, 3}}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := launcher.Close(); err != nil || launcher.Counts() != (Counts{}) {
		t.Errorf("after Close: %v, %+v", err, launcher.Counts())
	}
	launcher.Began(Collectives, 1) // does nothing
}

func TestLongStringsAreCut(t *testing.T) {
	launcher, worker := newPair(t)
	worker.Write(Report{Phase: strings.Repeat("p", 1000), Label: strings.Repeat("l", 1000)})
	if r, _ := launcher.Read(); len(r.Phase) != phaseBytes || len(r.Label) != labelBytes {
		t.Errorf("lengths %d, %d", len(r.Phase), len(r.Label))
	}
}

// A reader never sees half of one report and half of another.
func TestReportsAreWhole(t *testing.T) {
	launcher, worker := newPair(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				worker.Write(Report{Step: i, Phase: "p", Seq: uint64(i), Label: fmt.Sprint("l", i)})
			}
		}
	})
	for range 20000 {
		if r, ok := launcher.Read(); ok && (r.Seq != uint64(r.Step) || r.Label != fmt.Sprint("l", r.Step)) {
			t.Errorf("torn report %+v", r)
			break
		}
	}
	close(stop)
	wg.Wait()
}

func TestString(t *testing.T) {
	for want, r := range map[string]Report{
		"during all-reduce generator/bucket 3, seq 8812":          {Step: -1, Phase: "all-reduce", Seq: 8812, Label: "generator/bucket 3"},
		"during all-reduce generator/bucket 3, seq 8812, step 41": {Step: 41, Phase: "all-reduce", Seq: 8812, Label: "generator/bucket 3"},
		"during checkpoint, step 0":                               {Phase: "checkpoint"},
		"":                                                        {Step: 3},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/page")
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, f)
	if err := f.Truncate(pageBytes); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, r)
	defer shut(t, w)
	for name, fd := range map[string]int{"file": int(f.Fd()), "pipe": int(r.Fd()), "closed": 9999} {
		if _, err := Open(fd); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	_, worker := newPair(t)
	if err := worker.Close(); err != nil {
		t.Error(err)
	}
	if err := worker.Close(); err != nil {
		t.Error(err)
	}
	worker.Write(Report{Phase: "late"})
	if _, ok := worker.Read(); ok {
		t.Error("a closed page was read")
	}
}

func BenchmarkWrite(b *testing.B) {
	_, worker := newPair(b)
	for b.Loop() {
		worker.Write(Report{Step: 41, Phase: "all-reduce", Seq: 8812, Label: "generator/bucket 3"})
	}
}

// shut closes f.
func shut(t testing.TB, f *os.File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A rank that truncates its page cannot take it from its launcher.
func TestSealed(t *testing.T) {
	p, f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	p.Write(Report{Step: 1, Phase: "step"})
	for _, size := range []int64{0, 10 * pageBytes} {
		if err := f.Truncate(size); !errors.Is(err, os.ErrPermission) {
			t.Fatalf("truncated to %d bytes: %v", size, err) // a look at it would end this process
		}
	}
	if r, ok := p.Read(); !ok || r.Phase != "step" {
		t.Errorf("got %v, %v", r, ok)
	}
	if err := errors.Join(f.Close(), p.Close()); err != nil {
		t.Error(err)
	}
}
