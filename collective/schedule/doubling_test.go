package schedule

import (
	"fmt"
	"math/bits"
	"testing"
)

// treeText is the sum of hosts lo to hi as the tree has it, the slow way.
func treeText(lo, hi int) string {
	if hi-lo == 1 {
		return fmt.Sprint(lo)
	}
	cut := lo + 1<<(bits.Len(uint(hi-lo-1))-1)
	return "(" + treeText(lo, cut) + "+" + treeText(cut, hi) + ")"
}

// TestRounds walks the rounds of all hosts together, with what each sends written
// down: every host ends with the tree, nothing is sent that nobody reads or read
// that nobody sends, and nobody waits for ever.
func TestRounds(t *testing.T) {
	for n := 1; n <= 70; n++ {
		have, at := make([]string, n), make([]int, n)
		steps := make([][]Round, n)
		sent := map[[2]int][]string{} // on the way, from and to
		for h := range n {
			have[h], steps[h] = fmt.Sprint(h), Rounds(h, n)
			if len(steps[h]) > bits.Len(uint(n-1)) {
				t.Errorf("%d hosts: host %d has %d rounds", n, h, len(steps[h]))
			}
		}
		send := func(h int) {
			if at[h] < len(steps[h]) {
				for _, to := range steps[h][at[h]].To {
					sent[[2]int{h, to}] = append(sent[[2]int{h, to}], have[h])
				}
			}
		}
		for h := range n {
			send(h)
		}
		for moved := true; moved; {
			moved = false
			for h := range n {
				if at[h] == len(steps[h]) {
					continue
				}
				s := steps[h][at[h]]
				way := [2]int{s.From, h}
				if len(sent[way]) == 0 {
					continue
				}
				got := sent[way][0]
				sent[way] = sent[way][1:]
				if leaf := got == fmt.Sprint(s.From); leaf != s.Leaf {
					t.Errorf("%d hosts, host %d: round from %d has leaf %v, and gets %s", n, h, s.From, s.Leaf, got)
				}
				if s.Less {
					have[h] = "(" + got + "+" + have[h] + ")"
				} else {
					have[h] = "(" + have[h] + "+" + got + ")"
				}
				at[h]++
				moved = true
				send(h)
			}
		}
		for h, got := range have {
			if want := treeText(0, n); got != want {
				t.Errorf("%d hosts: host %d has %s, want %s", n, h, got, want)
			}
		}
		for way, left := range sent {
			if len(left) > 0 {
				t.Errorf("%d hosts: nobody has read %v, from and to %v", n, left, way)
			}
		}
	}
}
