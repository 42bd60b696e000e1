package member

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// imagined is launcher a in the time of a synctest bubble, on a network on which nobody answers.
// Of those who are called known gossip says that they live.
func imagined(t *testing.T, known ...string) *Member {
	t.Helper()
	network := &memberlist.MockNetwork{}
	list := gossip(t, network, "a")
	for _, name := range known {
		if _, err := gossip(t, network, name).Join([]string{list.LocalNode().Address()}); err != nil {
			t.Fatal(err)
		}
	}
	m := &Member{cfg: Config{Name: "a", Log: slog.New(slog.DiscardHandler)}, lives: map[string]*life{}, lost: map[string]bool{}, links: map[string]*link{}, answered: map[string]time.Time{}, places: map[string]*memberlist.Node{}}
	m.changed = sync.NewCond(&m.mu)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.list = list
	t.Cleanup(func() { m.cancel(); m.wg.Wait() })
	return m
}

// gossip is the part of a launcher that gossips, which says nothing of its own accord: who once
// has joined is known for ever.
func gossip(t *testing.T, network *memberlist.MockNetwork, name string) *memberlist.Memberlist {
	t.Helper()
	c := memberlist.DefaultLANConfig()
	c.Name, c.Transport, c.Logger = name, network.NewTransport(name), log.New(io.Discard, "", 0)
	c.ProbeInterval, c.GossipInterval, c.PushPullInterval = 0, 0, 0
	list, err := memberlist.Create(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Shutdown() })
	return list
}

// loss is the next that m tells of, and after how long; From is "" if there is none within
// that time.
func (m *Member) loss(within time.Duration) (in rendezvous.Inbound, after time.Duration) {
	for begun := time.Now(); time.Since(begun) < within; time.Sleep(10 * time.Millisecond) {
		m.mu.Lock()
		if len(m.arrived) > 0 {
			in, m.arrived = m.arrived[0], m.arrived[1:]
			m.mu.Unlock()
			return in, time.Since(begun)
		}
		m.mu.Unlock()
	}
	return in, within
}

// A launcher that says nothing is lost when it has been silent for five pulses and has not
// answered then, as often as it is to be asked. Who has no answer from anybody else, of two
// or more, is cut off himself.
func TestJudge(t *testing.T) {
	const never = 12 * time.Second
	const silent, asked = missed * pulseInterval, questions * probeTimeout
	soon, long := time.Now().Add(time.Second), time.Now() // of the bubble, see below
	for name, tt := range map[string]struct {
		formed int
		given  func(m *Member)
		after  time.Duration
		alone  bool
		known  string // to gossip, besides
	}{
		"of two":                     {2, func(*Member) {}, silent + asked, false, ""},
		"the job is not complete":    {0, func(*Member) {}, silent + formingPatience*asked, false, ""},
		"of three":                   {3, func(*Member) {}, silent + asked, true, ""},
		"slow pulses":                {2, func(m *Member) { m.told.Store(int64(4 * pulseInterval)) }, 4*silent + asked, false, ""},
		"another is heard":           {3, func(m *Member) { m.lives["c"] = &life{heard: soon} }, silent + asked, false, ""},
		"another was heard before":   {3, func(m *Member) { m.lives["c"] = &life{heard: long} }, silent + asked, true, ""},
		"another has left, and said": {3, func(m *Member) { m.lives["c"] = &life{heard: soon, left: true} }, silent + asked, true, ""},
		"another answers":            {3, func(m *Member) { m.answered["c"] = soon }, silent + asked, false, ""},
		"it has answered itself":     {3, func(m *Member) { m.answered["b"] = soon }, silent + asked, true, ""},
		"another leaves":             {3, func(m *Member) { m.parted = soon }, silent + asked, false, ""},
		"another left before":        {3, func(m *Member) { m.parted = long }, silent + asked, true, ""},
		"data of another": {3, func(m *Member) {
			m.lives["c"] = &life{heard: long}
			m.Vouch(func(name string) bool { return name == "c" })
		}, silent + asked, false, ""},
		"its data":       {3, func(m *Member) { m.Vouch(func(name string) bool { return name == "b" }) }, never, false, ""},
		"its data, late": {3, func(m *Member) { calls := 0; m.Vouch(func(string) bool { calls++; return calls%2 == 0 }) }, never, false, ""},
		"it leaves when it has been asked": {2, func(m *Member) {
			calls := 0
			m.Vouch(func(string) bool {
				if calls++; calls == 2 {
					m.hasLeft("b")
				}
				return false
			})
		}, never, false, ""},
		"node 0 has another": {3, func(m *Member) {
			m.cfg.Coordinator = true
			m.lives["c"] = &life{heard: long}
		}, silent + asked, true, ""},
		"node 0 has lost the other": {3, func(m *Member) {
			m.cfg.Coordinator = true
			m.lives["c"], m.lives["d"] = &life{heard: long, lost: true}, &life{heard: long, left: true}
		}, silent + asked, false, ""},
		"gossip knows a spare one":                          {2, func(*Member) {}, silent + asked, true, "c"},
		"gossip knows another, and the job is not complete": {0, func(*Member) {}, silent + formingPatience*asked, true, "c"},
		"gossip knows another that node 0 has lost": {3, func(m *Member) {
			m.cfg.Coordinator = true
			m.lives["c"] = &life{heard: long, lost: true}
		}, silent + asked, false, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := imagined(t, strings.Fields(tt.known)...)
				soon, long = time.Now().Add(time.Second), time.Now().Add(-time.Second)
				m.Formed(tt.formed)
				tt.given(m)
				m.lookAfter("b")
				in, after := m.loss(never)
				if after < tt.after || after > tt.after+4*pulseInterval {
					t.Errorf("lost after %v, want %v", after, tt.after)
				}
				if in.Alone != tt.alone || m.alone.Load() != tt.alone || after < never && (in.From != "b" || !in.Lost || in.How != rendezvous.Unreachable) {
					t.Errorf("got %+v, want that it is cut off: %v", in, tt.alone)
				}
				if again, _ := m.loss(3 * time.Second); again.From != "" {
					t.Errorf("again: %+v", again)
				}
			})
		})
	}
}

// Who answers is not lost, however often that is needed.
func TestJudgeIsAnswered(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.awaitPlace(t, "b")
	a.mu.Lock()
	l := a.lives["b"]
	a.mu.Unlock()
	answers, last := 0, time.Time{}
	for deadline := time.Now().Add(arrives); answers < 4; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		l.heard = time.Now().Add(-2 * a.silence()) // its life line is silent
		if at := a.answered["b"]; !at.Equal(last) {
			answers, last = answers+1, at
		}
		a.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("it has answered %d times", answers)
		}
	}
	select {
	case in := <-a.Inbox():
		t.Errorf("got %+v", in)
	default:
	}
}

// When one is asked, the others are, too: their answers are theirs, and not his.
func TestOthersAreAsked(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	for deadline := time.Now().Add(arrives); a.list.NumMembers() < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	answered := false
	for range 20 { // on a busy machine an answer may be late, and gossip give up the other for a while
		nobody, known := a.ask("nobody")
		if nobody || known > 2 {
			t.Fatalf("who is not there answers %v, of %d", nobody, known)
		}
		if known < 2 {
			continue
		}
		a.mu.Lock()
		_, answered = a.answered["b"]
		_, of := a.answered["nobody"]
		a.mu.Unlock()
		if of {
			t.Error("an answer of another counts as his")
		}
		if answered {
			break
		}
	}
	if !answered {
		t.Error("the other is not asked")
	}
}

// Who speaks again while it is asked is not lost.
func TestJudgeHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := imagined(t)
		m.lookAfter("b") // and is asked for nine seconds, as the job is not complete
		time.Sleep((missed + 2) * pulseInterval)
		for range 120 {
			time.Sleep(pulseInterval)
			if err := m.accept([]byte(`{"from":"b"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if len(m.arrived) > 0 {
			t.Errorf("got %+v", m.arrived)
		}
	})
}

// A late packet of who has left does not bring it back: its loss would be told again.
func TestLateWordOfWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := imagined(t)
		for name, left := range map[string]bool{"b": true, "c": false} {
			m.lives[name], m.lost[name] = &life{left: left, lost: true}, true
			if err := m.accept([]byte(`{"from":"` + name + `"}`)); err != nil {
				t.Fatal(err)
			}
			if m.lost[name] != left {
				t.Errorf("%s counts as lost: %v, want %v", name, m.lost[name], left)
			}
		}
	})
}

// Who was lost and is heard of again is looked after as at first, and who has left no more.
func TestJudgeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := imagined(t)
		judged := func() bool {
			time.Sleep(pulseInterval)
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.lives["b"].judged
		}
		m.Formed(2)
		m.lookAfter("b")
		for range 3 {
			if in, after := m.loss(time.Minute); in.From != "b" || after > time.Second {
				t.Errorf("got %+v after %v", in, after)
			}
			if judged() {
				t.Error("it is looked after though it is lost")
			}
			if err := m.accept([]byte(`{"from":"b"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if !judged() {
			t.Error("it is not looked after")
		}
		m.hasLeft("b")
		if judged() {
			t.Error("it is looked after though it has left")
		}
		if in, _ := m.loss(time.Minute); in.From != "" {
			t.Errorf("got %+v of who has left", in)
		}
	})
}

// While this process stands still nobody is silent, and for a while after it others may be
// as short of processor time as it was: they are asked more often.
func TestJudgeStandsStill(t *testing.T) {
	const still, asked = 2 * time.Second, questions * probeTimeout
	for name, tt := range map[string]struct {
		when int // the question at which it does: 0 is before the first
		want time.Duration
	}{
		"before it asks":  {0, missed*pulseInterval + still + mostPatience*asked},
		"while it asks":   {1, missed*pulseInterval + asked + still + patience*4*asked},
		"while others do": {5, missed*pulseInterval + asked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := imagined(t)
				calls := 0
				m.Vouch(func(string) bool {
					if calls++; calls-1 == tt.when {
						time.Sleep(still)
						return tt.when == 0
					}
					return false
				})
				m.Formed(2)
				begun := time.Now()
				m.lookAfter("b")
				in, after := m.loss(time.Minute)
				if in.From != "b" || after < tt.want || after > tt.want+4*pulseInterval {
					t.Errorf("got %+v after %v, want %v", in, after, tt.want)
				}
				l := m.lives["b"]
				if moved := l.heard.Sub(begun); tt.when == 0 && (moved < still-pulseInterval || moved > still) || !l.spoke.Equal(begun) {
					t.Errorf("it counts as heard %v later, as having spoken %v later", moved, l.spoke.Sub(begun))
				}
			})
		})
	}
}
