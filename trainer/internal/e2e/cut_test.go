package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fourMachines makes node0 to node3, connected by a switch of their own, which
// is a machine, too.
func fourMachines(s *site) (m [4]machine, middle machine) {
	s.t.Helper()
	two := twoMachines(s) // or skips
	middle = two[0]
	middle.sh("ip link del eth0; hostname switch; ip link add br0 type bridge; ip link set br0 up")
	for i := range m {
		m[i] = hold(s, fmt.Sprintf("node%d", i))
		middle.sh(fmt.Sprintf("ip link add port%d type veth peer name eth0 netns %d; ip link set port%d master br0 up", i, m[i].holder, i))
		m[i].sh(fmt.Sprintf("ip addr add 10.8.0.%d/24 dev eth0; ip link set eth0 up", i+1))
	}
	return m, middle
}

// launchFour starts args on all four.
func launchFour(m [4]machine, args ...string) (all [4]*running) {
	for i := range m {
		how := []string{"--join", "10.8.0.1:29400"}
		if i == 0 {
			how = []string{"--node-rank", "0", "--rdzv-endpoint", "10.8.0.1:29400"}
		}
		all[i] = m[i].s.startCommand(m[i].enter(append(append([]string{filepath.Join(bin, "ddplaunch"), "--nnodes", "4", "--rdzv-timeout", "30s"}, how...), args...)...))
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
			m, middle := fourMachines(s)
			all := launchFour(m, tiny("a", "--steps", "1000000")...)
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
			if took := time.Since(cut); took > 10*time.Second {
				t.Errorf("noticed after %v", took)
			}
			gone(t, family)
		})
	}
}
