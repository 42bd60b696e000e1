package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onSwitch makes machines node0, node1, …, connected by a switch of their own,
// which is a machine, too.
func onSwitch(s *site, n int) (m []machine, middle machine) {
	s.t.Helper()
	two := twoMachines(s) // or skips
	middle = two[0]
	middle.sh("ip link del eth0; hostname switch; ip link add br0 type bridge; ip link set br0 up")
	for i := range n {
		m = append(m, hold(s, fmt.Sprintf("node%d", i)))
		middle.sh(fmt.Sprintf("ip link add port%d type veth peer name eth0 netns %d; ip link set port%d master br0 up", i, m[i].holder, i))
		m[i].sh(fmt.Sprintf("ip addr add 10.8.0.%d/24 dev eth0; ip link set eth0 up", i+1))
	}
	return m, middle
}

// launchAll starts args on all machines.
func launchAll(m []machine, args ...string) (all []*running) {
	for i := range m {
		how := []string{"--join", "10.8.0.1:29400"}
		if i == 0 {
			how = []string{"--node-rank", "0", "--rdzv-endpoint", "10.8.0.1:29400"}
		}
		launch := append([]string{filepath.Join(bin, "ddplaunch"), "--nnodes", fmt.Sprint(len(m)), "--rdzv-timeout", "30s"}, how...)
		all = append(all, m[i].s.startCommand(m[i].enter(append(launch, args...)...)))
	}
	return all
}

// TestCutOff pulls the cable of one of four hosts: all ranks end, the three name
// the one, and the one says that it is the one.
func TestCutOff(t *testing.T) {
	long(t)
	for _, lost := range []int{0, 2} {
		t.Run(fmt.Sprint("node ", lost), func(t *testing.T) {
			s := newSite(t)
			s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
			m, middle := onSwitch(s, 4)
			all := launchAll(m, tiny("a", "--steps", "1000000")...)
			s.awaitStep(all[0], "a", 2)
			var family []int
			for _, r := range all {
				family = append(family, r.children()...)
			}
			middle.sh(fmt.Sprintf("ip link set port%d down", lost))
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
	m, middle := onSwitch(s, 2)
	args := append(tiny("slow", "--steps", "2"), "--width", "12")
	all := launchAll(m, args...)
	s.awaitFile("slow/config.json")
	if out, err := exec.Command("tc", "-V").CombinedOutput(); err != nil {
		t.Skipf("needs tc, to make a narrow link: %v: %s", err, out)
	}
	for i := range m {
		middle.sh(fmt.Sprintf("tc qdisc add dev port%d root tbf rate 2mbit burst 16kb limit 4mb", i))
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
