package e2e

import (
	"regexp"
	"testing"
)

// TestUnbegunIsInNobodysWay: a run that fails before its first step, since one of three hosts
// with disks of their own has no place for it, is on none of them in the way of the next try.
func TestUnbegunIsInNobodysWay(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	m, _ := onSwitch(s, 3)
	m[0].sh("mkdir runs")
	for _, h := range m[1:] {
		h.sh("mount -t tmpfs none runs")
	}
	m[2].sh("mkdir runs/a && touch runs/a/notes")
	args := tiny("runs/a", "--steps", "2", "--batch", "6")
	says := regexp.MustCompile(`rank 2 \(.*, pid \d+\): runs/a is not empty \(it has notes\)`)
	for i, r := range launchAll(m, args...) {
		if e := r.wait(); e.code != 1 || !says.MatchString(e.stderr) {
			t.Errorf("node %d: want exit code 1 and %v, %v", i, says, e)
		}
	}
	for _, h := range m[:2] {
		h.sh(`grep -q '"failed": ".*it has notes' runs/a/config.json`)
	}
	m[2].sh("rm -r runs/a")
	for i, r := range launchAll(m, args...) {
		if e := r.wait(); e.code != 0 {
			t.Errorf("the next try: node %d: %v", i, e)
		}
	}
	if n := len(s.losses("runs/a")); n != 2 {
		t.Errorf("%d steps were done, want 2", n)
	}
}
