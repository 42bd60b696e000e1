package supervise

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is started bound is bound, and what comes after it is not.
func TestBoundStart(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	var last unix.CPUSet
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			last.Zero()
			last.Set(cpu)
		}
	}
	s := newSpawner()
	defer s.Close()
	allowed := func(cpus *unix.CPUSet) string {
		t.Helper()
		var out strings.Builder
		cmd := exec.Command("grep", "Cpus_allowed:", "/proc/self/status")
		cmd.Stdout = &out
		if err := s.start(cmd, cpus); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	free := allowed(nil)
	bound := allowed(&last)
	if all.Count() > 1 && bound == free {
		t.Errorf("bound to one of %d processors it may use %q, as without", all.Count(), bound)
	}
	if again := allowed(&last); again != bound {
		t.Errorf("bound once more: %q, want %q", again, bound)
	}
	if after := allowed(nil); after != free {
		t.Errorf("afterwards %q, want %q", after, free)
	}
	if err := s.start(exec.Command("true"), &unix.CPUSet{}); err == nil || !strings.HasPrefix(err.Error(), "bind a rank to its processors: ") {
		t.Errorf("on no processor: %v", err)
	}
	if after := allowed(nil); after != free {
		t.Errorf("after that %q, want %q", after, free)
	}
}
