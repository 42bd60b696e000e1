package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/netns"
)

// onSwitch makes machines node0, node1, …, connected by a switch of their own.
func onSwitch(s *site, n int) (m []machine, net *netns.Network) {
	s.t.Helper()
	needMachines(s)
	net, err := netns.New(n, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := net.Close(); err != nil {
			s.t.Error(err)
		}
	})
	for _, h := range net.Hosts {
		m = append(m, machine{h, s})
	}
	return m, net
}

// launchAll starts args on all machines.
func launchAll(m []machine, args ...string) (all []*running) {
	for i := range m {
		node0 := m[0].Addr + ":29400"
		how := []string{"--node-rank", fmt.Sprint(i), "--join", node0} // else they are numbered as they arrive
		if i == 0 {
			how = []string{"--node-rank", "0", "--rdzv-endpoint", node0}
		}
		launch := append([]string{filepath.Join(bin, "ddplaunch"), "--nnodes", fmt.Sprint(len(m)), "--rdzv-timeout", "30s"}, how...)
		all = append(all, m[i].s.startCommand(m[i].enter(append(launch, args...)...)))
	}
	return all
}

// TestCutOff pulls the cable of one of four hosts, or takes its interface down, after
// which that host can send nothing: all ranks end, the three name the one, and the one
// says that it is the one.
func TestCutOff(t *testing.T) {
	long(t)
	cable := func(net *netns.Network, i int) error { return net.Plug(i, false) }
	own := func(net *netns.Network, i int) error {
		return net.Hosts[i].Sh(fmt.Sprintf("ip link set %s down", netns.Interface))
	}
	for name, c := range map[string]struct {
		lost int
		cut  func(net *netns.Network, i int) error
	}{"node 0": {0, cable}, "node 2": {2, cable}, "interface of node 0": {0, own}, "interface of node 2": {2, own}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
			m, net := onSwitch(s, 4)
			all := launchAll(m, tiny("a", "--steps", "1000000")...)
			s.awaitStep(all[0], "a", 2)
			var family []int
			for _, r := range all {
				family = append(family, r.children()...)
			}
			lost := c.lost
			if err := c.cut(net, lost); err != nil {
				t.Fatal(err)
			}
			cut := time.Now()
			for i, r := range all {
				e := r.wait()
				t.Logf("node %d ended %v after the cut", i, time.Since(cut))
				says := fmt.Sprintf("ddplaunch: node %d (node%d): lost with ", lost, lost)
				if i == lost {
					says = fmt.Sprintf("ddplaunch: node %d (node%d) reaches none of the other 3 nodes\n", lost, lost)
				}
				if e.code != 1 || !strings.Contains(e.stderr, says) {
					t.Errorf("node %d: want exit code 1 and %q, %v", i, says, e)
				}
			}
			if took := time.Since(cut); took > atOnce {
				t.Errorf("noticed after %v", took)
			}
			gone(t, family)
		})
	}
}

// TestNarrowLink has a link that is full of data for many seconds, behind which
// everything else waits: the job goes on, and computes what it always does.
func TestNarrowLink(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m, net := onSwitch(s, 2)
	args := append(tiny("slow", "--steps", "2"), "--width", "12")
	all := launchAll(m, args...)
	s.awaitFile("slow/config.json")
	if err := net.LimitIn(0.002); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for i, r := range all {
		if e := r.wait(); e.code != 0 {
			t.Fatalf("node %d: %v", i, e)
		}
	}
	t.Logf("2 steps took %v", time.Since(begun))
	s.must(on(2, append(tiny("fast", "--steps", "2"), "--width", "12"))...)
	if one, two := s.losses("fast"), s.losses("slow"); fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("losses on one host\n%v\nand on two\n%v", one, two)
	}
}

// awaitFile waits for a file.
func (s *site) awaitFile(name string) {
	s.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(s.path(name)); err == nil {
			return
		}
		if time.Since(begun) > patience/2 {
			s.t.Fatalf("%s was not made", name)
		}
	}
}
