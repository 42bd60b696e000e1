package forecast

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestTwo has two launchers whose times can be added up by hand.
func TestTwo(t *testing.T) {
	c := Costs{Message: 1 * ms, Start: 100 * ms, Peer: 10 * ms, Join: 7 * ms, End: 20 * ms, EndPeer: 3 * ms, Latency: 5 * ms}
	got, err := Run(c, Site{Launchers: 2, Processors: 1})
	if err != nil {
		t.Fatal(err)
	}
	// Start, two ways there and back around the coordinator's Join, then register,
	// assign, ack and commit: each a Message at both ends and a way.
	if want := (110 + 10 + 7 + 10 + 4*(1+5+1)) * ms; got.Joined != want {
		t.Errorf("joined after %v, want %v", got.Joined, want)
	}
	// The way and the news; node 0 tells itself at once, and then ends.
	if want := (5 + 1) * ms; got.Known != want {
		t.Errorf("known after %v, want %v", got.Known, want)
	}
	if want := got.Known + 23*ms; got.Ended != want {
		t.Errorf("ended after %v, want %v", got.Ended, want)
	}
}

// TestOneMachine has launchers share two processors: what they all compute is divided
// by two, and by what of them they get.
func TestOneMachine(t *testing.T) {
	c := Costs{Start: 100 * ms}
	for share, want := range map[float64]time.Duration{0: 50 * 100 * ms, 0.5: 2 * 50 * 100 * ms} {
		got, err := Run(c, Site{Launchers: 100, OneMachine: true, Processors: 2, Share: share})
		if err != nil || got.Joined != want {
			t.Errorf("share %v: joined after %v, %v, want %v", share, got.Joined, err, want)
		}
	}
	apart, err := Run(c, Site{Launchers: 100, Processors: 2})
	if err != nil || apart.Joined != 100*ms {
		t.Errorf("apart they joined after %v, %v, want the time of one", apart.Joined, err)
	}
}

// TestMany looks at what grows with the number of launchers: the coordinator's work for
// each, and a list of all for each.
func TestMany(t *testing.T) {
	c := Costs{Message: 10 * time.Microsecond, Encode: 1, Carry: 0.5, Decode: 1, Join: ms, Latency: ms, End: ms}
	var before Times
	for _, n := range []int{16, 256, 1024} {
		got, err := Run(c, Site{Launchers: n, Processors: 4, Bandwidth: 1e9})
		if err != nil {
			t.Fatal(err)
		}
		if least := time.Duration(n-1) * c.Join / 4; got.Joined < least || got.Known <= 0 || got.Ended < got.Known+c.End {
			t.Errorf("%d launchers: %+v, want at least %v to join", n, got, least)
		}
		if got.Joined <= before.Joined || got.Known <= before.Known || got.Bytes <= before.Bytes || got.Sent < float64(n)*float64(got.Bytes) {
			t.Errorf("%d launchers: %+v, fewer: %+v", n, got, before)
		}
		before = got
	}
}

// TestQueue has a launcher with ten things to do, and others with one: a launcher that waits for
// itself leaves the processors to others, and a processor does not stand idle before what is
// to be done later.
func TestQueue(t *testing.T) {
	for processors, want := range map[int][]time.Duration{
		1: {110 * ms, 20 * ms}, 2: {100 * ms, 10 * ms}, 8: {100 * ms, 10 * ms},
	} {
		w := &world{site: Site{Processors: processors}}
		shared := w.machine()
		w.launchers = []*launcher{{machine: shared}, {machine: shared}}
		var through [2]time.Duration
		for range 10 {
			w.work(0, 10*ms, func() { through[0] = w.now })
		}
		w.work(1, 10*ms, func() { through[1] = w.now })
		never := time.Duration(0)
		_ = w.drain(&never) // it does not come, as nothing of this is waited for
		if !slices.Equal(through[:], want) {
			t.Errorf("%d processors: the launchers are through after %v, want %v", processors, through, want)
		}
	}
}
