package e2e

import (
	"math"
	"strings"
	"syscall"
	"testing"
)

// TestSmoke is what a newcomer does first.
func TestSmoke(t *testing.T) {
	s := newSite(t)
	e := s.must(on(2, tiny("a", "--steps", "3", "--print-every", "1"))...)
	if !strings.Contains(e.stdout, "step 3/3") || e.stderr != "" {
		t.Errorf("want lines of progress and no complaint, got %v", e)
	}
	if n := len(s.losses("a")); n != 3 {
		t.Errorf("metrics.jsonl has %d lines, want 3", n)
	}
	s.must("sample", "--run", "a", "--n", "4", "--out", "grid.png")
}

// rounding is how far two worlds may be apart, relative to 1 + |loss|. They add
// the same float32 terms, some ten thousand to a sum, in another order: about
// 1e-7 after a step, and no more than 1.2e-6 was seen in ten. An activation
// that lies within rounding of a leaky ReLU's kink makes a jump of 1e-5 to 1e-3
// in the gradient, which is as large between the cpu and ref backends on one
// rank; the seeds here have none in ten steps.
const rounding = 1e-5

func TestWorldsAgree(t *testing.T) {
	long(t)
	for _, c := range []struct{ order, seed string }{{"upper-lower", "1"}, {"lower-upper", "2"}} {
		t.Run(c.order, func(t *testing.T) {
			s := newSite(t)
			args := func(out string) []string {
				return tiny(out, "--steps", "10", "--ckpt-every", "0", "--samples", "0", "--device", "cpu", "--order", c.order, "--seed", c.seed)
			}
			s.must(args("alone")...)
			s.must(on(2, args("two"))...)
			s.must(on(4, args("four"))...)
			s.close("alone", "two", rounding)
			s.close("alone", "four", rounding)
			if l := s.losses("alone"); len(l) != 10 || l[0]["recon"] == l[9]["recon"] {
				t.Errorf("%d steps that change nothing", len(l))
			}
		})
	}
}

// close compares the losses of two runs, tol relative to 1 + |loss|.
func (s *site) close(a, b string, tol float64) {
	s.t.Helper()
	x, y := s.losses(a), s.losses(b)
	if len(x) != len(y) {
		s.t.Fatalf("%s has %d steps, %s has %d", a, len(x), b, len(y))
	}
	for i := range x {
		if len(x[i]) == 0 || len(x[i]) != len(y[i]) {
			s.t.Fatalf("step %d: %d losses in %s, %d in %s", i, len(x[i]), a, len(y[i]), b)
		}
		for name, v := range x[i] {
			if w, ok := y[i][name]; !ok || !(math.Abs(v-w) <= tol*(1+math.Abs(v))) {
				s.t.Errorf("step %d: %s is %v in %s and %v in %s", i, name, v, a, w, b)
			}
		}
	}
}

// TestInterruptedRuns holds runs that were stopped, or robbed of a rank, and
// resumed to the one that was not. Replicas are compared by the program itself
// every five steps.
func TestInterruptedRuns(t *testing.T) {
	long(t)
	s := newSite(t)
	args := func(out string, more ...string) []string {
		return on(2, tiny(out, append([]string{"--steps", "50", "--ckpt-every", "10", "--ckpt-keep", "0"}, more...)...))
	}
	s.must(args("whole")...)
	const last = "/ckpt/step-00000050"

	t.Run("again", func(t *testing.T) {
		s.t = t
		s.must(args("again")...)
		s.sameFiles("whole/ckpt", "again/ckpt")
		s.close("whole", "again", 0)
	})
	t.Run("ctrl-c", func(t *testing.T) {
		s.t = t
		r := s.start(args("stopped")...)
		s.awaitStep(r, "stopped", 24)
		r.signal(syscall.SIGINT)
		e := r.wait()
		n := len(s.losses("stopped"))
		if e.code != 75 || n < 25 || n >= 50 {
			t.Fatalf("after SIGINT at step 25: %d steps done, %v", n, e)
		}
		if want := "[0-1] train: stopped before the end; the same command with --resume goes on"; !strings.Contains(e.stderr, want) {
			t.Errorf("want %q, got %s", want, e.stderr)
		}
		s.must(args("stopped", "--resume")...)
		s.sameFiles("whole"+last, "stopped"+last)
		s.close("whole", "stopped", 0)
	})
	t.Run("kill -9", func(t *testing.T) {
		s.t = t
		r := s.start(args("killed")...)
		s.awaitStep(r, "killed", 24)
		s.kill(r.ranks()[1])
		if e := r.wait(); e.code != 137 {
			t.Fatalf("want exit 137, got %v", e)
		}
		s.must(args("killed", "--resume")...)
		s.sameFiles("whole"+last, "killed"+last)
		s.close("whole", "killed", 0)
	})
	t.Run("another world", func(t *testing.T) {
		s.t = t
		half := func(out string, steps string, more ...string) []string {
			return tiny(out, append([]string{"--steps", steps, "--ckpt-every", "0"}, more...)...)
		}
		s.must(on(2, half("moved", "5"))...)
		s.must(half("moved", "10", "--resume")...)
		s.must(half("still", "10")...)
		s.close("still", "moved", rounding)
	})
}

// TestStopAlone stops a run without a launcher.
func TestStopAlone(t *testing.T) {
	long(t)
	s := newSite(t)
	r := s.start(tiny("a", "--steps", "1000000")...)
	s.awaitStep(r, "a", 3)
	r.signal(syscall.SIGTERM)
	e := r.wait()
	if want := "train: stopped before the end; the same command with --resume goes on\n"; e.code != 75 || e.stderr != want {
		t.Errorf("want exit 75 and %q, got %v", want, e)
	}
	n := len(s.losses("a"))
	s.must(tiny("a", "--resume", "--steps", "1")...) // already done: nothing to do
	if m := len(s.losses("a")); m != n {
		t.Errorf("%d lines after a resume of a finished run, had %d", m, n)
	}
}
