package statuspage

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLastCollectives(t *testing.T) {
	launcher, worker := newPair(t)
	if all := launcher.Last(99); len(all) != 0 {
		t.Errorf("a fresh page has %+v", all)
	}
	begin := time.Unix(1000, 5)
	entry := func(i int) Collective {
		return Collective{Seq: uint64(i), Kind: "all-reduce", Op: "mean", Type: "f32", Len: 10 * i, Label: fmt.Sprintf("bucket %d", i), Begun: begin}
	}
	for i := range 40 {
		worker.Begin(entry(i))
		if i != 38 && i < 39 {
			worker.End(uint64(i), begin.Add(time.Second), i == 37)
		}
	}
	all := launcher.Last(99)
	if len(all) != ringSize {
		t.Fatalf("%d are kept, want %d", len(all), ringSize)
	}
	for k, got := range all {
		want := entry(40 - ringSize + k)
		if want.Seq < 38 {
			want.Ended, want.Bad = begin.Add(time.Second), want.Seq == 37
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if two := launcher.Last(2); len(two) != 2 || two[0].Seq != 38 {
		t.Errorf("the last two are %+v", two)
	}
	worker.End(38, begin.Add(2*time.Second), false) // not the last
	if got := launcher.Last(2)[0]; !got.Ended.Equal(begin.Add(2*time.Second)) || got.Bad {
		t.Errorf("ended late: %+v", got)
	}
	if c := launcher.Counts().Met[Collectives]; c != (Meetings{Begun: 40, Ended: 39}) {
		t.Errorf("counts %+v", c)
	}
	worker.Begin(Collective{Kind: strings.Repeat("k", 99), Op: strings.Repeat("o", 99), Type: strings.Repeat("t", 99), Label: strings.Repeat("l", 999)})
	if got := launcher.Last(1)[0]; len(got.Kind) != kindBytes || len(got.Op) != opBytes || len(got.Type) != typeBytes || len(got.Label) != placeBytes {
		t.Errorf("long texts: %+v", got)
	}
	if err := worker.Close(); err != nil {
		t.Fatal(err)
	}
	worker.Begin(entry(1)) // does nothing
	worker.End(1, begin, true)
}

// Who reads while another writes finds whole entries.
func TestLastWhileWritten(t *testing.T) {
	launcher, worker := newPair(t)
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				worker.Begin(Collective{Seq: uint64(i), Len: i, Label: strings.Repeat(string(rune('a'+i%26)), 1+i%placeBytes)})
			}
		}
	})
	for range 2000 {
		for _, c := range launcher.Last(ringSize) {
			if c.Len != int(c.Seq) || c.Label != strings.Repeat(string(rune('a'+c.Seq%26)), 1+int(c.Seq)%placeBytes) {
				t.Fatalf("torn: %+v", c)
			}
		}
	}
	close(stop)
	writer.Wait()
}

func BenchmarkBegin(b *testing.B) {
	_, worker := newPair(b)
	c := Collective{Kind: "all-reduce", Op: "mean", Type: "f32", Len: 1 << 20, Label: "generator/bucket 3", Begun: time.Now()}
	for i := range b.N {
		c.Seq = uint64(i)
		worker.Begin(c)
		worker.End(c.Seq, c.Begun, false)
	}
}
