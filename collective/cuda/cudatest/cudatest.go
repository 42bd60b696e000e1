// Package cudatest gives tests a machine with GPUs: doubles of NVIDIA's
// libraries in C, built by the C compiler under their real names and found
// through the loader's own override. Their kernels really run, compiled by gcc.
//
// A process loads its libraries once, so all tests of a package share one
// machine, which [Use] gives. What it is like is said by knobs: by the
// environment (EBDOUBLE_ and the knob's name), or by [Machine.Set] for the test
// at hand. Processes that a test starts inherit the environment, and have
// machines of their own.
//
// Knobs: DEVICES (1, at most 16), PARTS (so many devices are parts of one GPU; 0: each is
// a whole one), CAPABILITY (90), SMS (4), DRIVER (13000),
// MEMORY (bytes of a device), NAME; SEED and DELAY (before one operation in
// four, a random time below so many microseconds); ORDER of blocks and threads
// (0 forwards, 1 backwards, 2 at random); QUEUE (operations that a stream holds before
// copies and launches of kernels wait, 0 is any number); FAULT (FUNCTION=N=CODE or
// FUNCTION=N=~MILLISECONDS, in the environment a list with commas); WAKE (who waits for such
// milliseconds goes on).
//
// Device memory and pinned memory lie between pages that cannot be touched and
// are full of NaN at first.
package cudatest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ebtrain/collective/cuda"
)

// Prefix begins the knobs' names in the environment.
const Prefix = "EBDOUBLE_"

// Folder builds the doubles, unless they are built already, and returns the
// folder that they are in. Without cgo or a C compiler the test is skipped; where
// CI is set in the environment, only without cgo.
func Folder(tb testing.TB) string {
	tb.Helper()
	if !haveCgo {
		tb.Skip(cuda.ErrNoCgo)
	}
	folder, err := built()
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	return folder
}

var built = sync.OnceValues(buildAll)

// settle makes this process, and those that it starts, find the doubles and
// nothing else. Kernels are kept beside the doubles that compiled them.
var settle = sync.OnceValue(func() error {
	folder, err := built()
	if err != nil {
		return err
	}
	for variable, value := range map[string]string{
		cuda.LibsVariable:  folder + ":-",
		cuda.CacheVariable: filepath.Join(folder, "kernels"),
	} {
		if err := os.Setenv(variable, value); err != nil {
			return err
		}
	}
	return os.Unsetenv("CUDA_VISIBLE_DEVICES")
})

// Use makes package cuda find the doubles, in this process and those that it
// starts, and returns the machine, as the environment has it. It is so again
// after the test.
func Use(tb testing.TB) *Machine {
	tb.Helper()
	folder := Folder(tb)
	if err := settle(); err != nil {
		tb.Fatal(err)
	}
	m, err := openMachine(filepath.Join(folder, "libcuda.so.1"))
	if err != nil {
		tb.Fatal(err)
	}
	m.tb = tb
	m.reset()
	tb.Cleanup(m.reset)
	return m
}

// Set sets a knob until the test ends.
func (m *Machine) Set(knob, value string) {
	m.tb.Helper()
	if !m.set(knob, value) {
		m.tb.Fatalf("the machine has no knob %s with a value %s", knob, value)
	}
}

// Clean fails the test if objects are left on the machine, or something was
// written beside its memory.
func (m *Machine) Clean() {
	m.tb.Helper()
	m.guards()
	if left := m.Left(); left != "" {
		m.tb.Errorf("left on the machine: %s", left)
	}
}
