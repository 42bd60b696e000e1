package member

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// That gossip misses a launcher is its loss only after its last messages, if it has said
// that it leaves; else whoever is to judge looks after it first.
func TestGossipMisses(t *testing.T) {
	for name, tt := range map[string]struct {
		coordinator, left bool
		after             time.Duration
	}{
		"node 0, of who has left":  {true, true, leftWait},
		"node 0, of another":       {true, false, missed*pulseInterval + questions*probeTimeout},
		"another, of who has left": {false, true, leftWait},
		"another, of another":      {false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := imagined(t)
				m.cfg.Coordinator, m.coord = tt.coordinator, "node 0"
				m.Formed(2)
				if tt.left {
					m.hasLeft("b")
				}
				(&delegate{m}).NotifyLeave(&memberlist.Node{Name: "b"})
				if in, after := m.loss(time.Minute); in.From != "b" || after < tt.after || after > tt.after+pulseInterval {
					t.Errorf("got %+v after %v, want %v", in, after, tt.after)
				}
			})
		})
	}
}

// A launcher that gossip has found again may be lost again, unless it has left; and where it
// is stays as it was told, whatever memberlist does with what it told it by.
func TestGossipFinds(t *testing.T) {
	m := &Member{lives: map[string]*life{"b": {}, "c": {left: true}}, lost: map[string]bool{"b": true, "c": true, "d": true}, places: map[string]*memberlist.Node{}}
	for name, stays := range map[string]bool{"b": false, "c": true, "d": false} {
		n := &memberlist.Node{Name: name, Port: 7}
		(&delegate{m}).NotifyJoin(n)
		n.Port = 8
		if m.lost[name] != stays || m.place(name).Port != 7 {
			t.Errorf("%s counts as lost: %v, want %v; it is at port %d", name, m.lost[name], stays, m.place(name).Port)
		}
	}
}

// Only the farewell of a launcher that is known counts: one of another job, or of nobody, says
// nothing of how many there are.
func TestFarewellOfAStranger(t *testing.T) {
	m := &Member{lives: map[string]*life{}, places: map[string]*memberlist.Node{"b": {Name: "b"}}}
	for name, counts := range map[string]bool{"x": false, "b": true} {
		m.parted = time.Time{}
		if err := m.accept([]byte(`{"from":"` + name + `","leaves":true}`)); err != nil {
			t.Fatal(err)
		}
		if m.parted.IsZero() == counts {
			t.Errorf("of %s: %v", name, m.parted)
		}
	}
}

// Node 0 takes packets of a launcher that it has met, whether its link or its life line came
// first, and of nobody else; others take those of node 0 alone.
func TestOurs(t *testing.T) {
	m := &Member{cfg: Config{Coordinator: true}, lives: map[string]*life{"b": {}}, links: map[string]*link{"c": newLink("c")}}
	for _, tt := range []struct {
		coordinator bool
		coord       string
		want        map[string]bool
	}{
		{true, "", map[string]bool{"b": true, "c": true, "x": false, "": false}},
		{false, "c", map[string]bool{"b": false, "c": true, "x": false, "": false}},
		{false, "", map[string]bool{"b": false, "": false}}, // it has not met node 0 yet
	} {
		m.cfg.Coordinator, m.coord = tt.coordinator, tt.coord
		for name, want := range tt.want {
			if got := m.ours(name); got != want {
				t.Errorf("node 0 %v, which is %q: %q is one of ours: %v", tt.coordinator, tt.coord, name, got)
			}
		}
	}
}
