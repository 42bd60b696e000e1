package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestElastic trains with 2 to 4 launchers, each of which stands for a host: it
// begins with four, of which one is killed, so that two go on and one is spare;
// the spare takes the place of another that is killed; and when two more come, all
// four go on. The losses and the last checkpoint are those of a run that nobody
// disturbed, bit for bit.
func TestElastic(t *testing.T) {
	long(t)
	s := newSite(t)
	s.env = []string{"EBTRAIN_KEY=a secret of the test, long enough"}
	args := tiny("a", "--deterministic", "--steps", "1000000", "--ckpt-every", "5")
	launch := func(more ...string) *running {
		return s.start(append(append([]string{"ddplaunch", "--nnodes", "2:4", "--rdzv-timeout", "20s"}, more...), args...)...)
	}
	first := launch("--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0")
	at := first.invitation(t)
	others := []*running{launch("--join", at), launch("--join", at), launch("--join", at)}
	epoch := func(n int, says string) {
		t.Helper()
		for begun := time.Now(); !strings.Contains(first.err.String(), fmt.Sprintf("ddplaunch: epoch %d: %s", n, says)); time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > patience/2 {
				t.Fatalf("no epoch %d: %s", n, first.err.String())
			}
		}
	}
	s.awaitStep(first, "a", 5)
	others[0].signal(syscall.SIGKILL)
	epoch(1, "node ")
	// Who is spare says so; the other is killed.
	var spare, busy *running
	for begun := time.Now(); spare == nil; time.Sleep(5 * time.Millisecond) {
		for i, r := range others[1:] {
			if strings.Contains(r.err.String(), "ddplaunch: this node is spare") {
				spare, busy = r, others[2-i]
			}
		}
		if time.Since(begun) > patience/2 {
			t.Fatalf("nobody is spare: %s", first.err.String())
		}
	}
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	busy.signal(syscall.SIGKILL)
	epoch(2, "node 1 (")
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	more := []*running{launch("--join", at), launch("--join", at)}
	epoch(3, "from 2 to 4 nodes, with ")
	s.awaitStep(first, "a", int64(len(s.losses("a")))+10)
	spare.signal(syscall.SIGTERM)
	for i, r := range append(more, first, spare) {
		if e := r.wait(); e.code != 75 {
			t.Errorf("launcher %d: want exit code 75, %v", i, e)
		}
	}
	many := s.losses("a")
	steps := len(many)
	s.must(tiny("whole", "--deterministic", "--steps", fmt.Sprint(steps))...)
	if one := s.losses("whole"); fmt.Sprint(one) != fmt.Sprint(many) {
		t.Errorf("the losses of %d steps differ from those of the undisturbed run", steps)
	}
	one, other := s.content(fmt.Sprintf("whole/ckpt/step-%08d", steps)), s.content(fmt.Sprintf("a/ckpt/step-%08d", steps))
	for name := range one { // state.json has the number of ranks
		if strings.HasSuffix(name, ".safetensors") && !bytes.Equal(one[name], other[name]) {
			t.Errorf("%s differs from that of the undisturbed run", name)
		}
	}
}
