package cuda

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
)

// meeting has ranks wait for each other while they capture collectives, as with NVLS, whose
// hangs end sooner than a test.
func meeting(t *testing.T) Config {
	t.Helper()
	t.Setenv("NCCL_NVLS_ENABLE", "1")
	t.Setenv(cudatest.Prefix+"NCCL_MEET", "1")
	return Config{Timeout: time.Minute}
}

// TestOneRankCannotBeginCapture: where ranks wait for each other in a capture, and one cannot
// begin its own, all launch step by step, and that one says why.
func TestOneRankCannotBeginCapture(t *testing.T) {
	const runs = firstMeasured + 2
	c := meeting(t)
	want := runRanks(t, alike(Config{Graphs: GraphsOff}), runs, undisturbed)
	for _, test := range []struct{ name, fault, says string }{
		{"all can", "", ""},
		{"the first graph", "cuStreamBeginCapture_v2=1=999", "launched one by one"},
		{"the second slot's graph", "cuStreamBeginCapture_v2=4=999", "launched one by one"},
		{"the graph that measures", "cuStreamBeginCapture_v2=5=999", "cannot be measured"},
		{"what measures", "cuEventCreate=1=999", "cannot be measured"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := cudatest.Use(t)
			o := runRanks(t, alike(c), runs, onceCompiled(func() {
				if test.fault != "" {
					m.Set("FAULT", test.fault)
				}
			}))
			if err := errors.Join(o.errs[:]...); err != nil {
				t.Fatal(err)
			}
			eager := test.says == "launched one by one"
			if o.eager != [2]bool{eager, eager} || o.captured != [2]bool{!eager, !eager} {
				t.Errorf("ranks are launched step by step: %v, and have graphs: %v", o.eager, o.captured)
			}
			if (test.says != "") != (len(o.said) == 1) || len(o.said) > 1 || test.says != "" && !strings.Contains(o.said[0], test.says) {
				t.Errorf("said %q, want %q", o.said, test.says)
			}
			for r := range o.bits {
				if !slices.Equal(o.bits[r], want.bits[r]) {
					t.Errorf("rank %d: other bits", r)
				}
			}
		})
	}
}

// TestOneRankMustCapture: where a graph must be, the rank that cannot begin ends all of them.
func TestOneRankMustCapture(t *testing.T) {
	c := meeting(t)
	c.Graphs = GraphsOn
	o := runRanks(t, alike(c), 3, undisturbed, "cuStreamBeginCapture_v2=1=999")
	for r, err := range o.errs {
		if err == nil || !strings.Contains(err.Error(), "cuStreamBeginCapture_v2") {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
}

// TestCaptureFailsWhereRanksMeet: a rank whose capture fails in the middle ends all of them, soon.
func TestCaptureFailsWhereRanksMeet(t *testing.T) {
	c := meeting(t)
	m := cudatest.Use(t)
	var both sync.WaitGroup
	both.Add(2)
	var began time.Time // once all is compiled
	once := sync.OnceFunc(func() { began = time.Now(); m.Fail("cuLaunchKernel", 1, 1) })
	o := runRanks(t, alike(c), 3, func(_, n int, _ *program) error {
		if n == 1 { // which is captured
			both.Done()
			both.Wait()
			once()
		}
		return nil
	})
	ill, well := o.errs[0], o.errs[1]
	if errors.Is(ill, collective.ErrAborted) {
		ill, well = well, ill
	}
	if ill == nil || !strings.Contains(ill.Error(), "cuLaunchKernel") || !strings.Contains(ill.Error(), "NCCL_NVLS_ENABLE") || !errors.Is(well, collective.ErrAborted) {
		t.Errorf("got %v", o.errs)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
