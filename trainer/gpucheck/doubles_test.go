package main

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/collective/colltest"
	"ebtrain/collective/cuda/cudatest"
)

func TestMain(m *testing.M) {
	colltest.Main(openProcess)
	if slices.Contains(os.Args, "--worker") || slices.Contains(os.Args, "--from") {
		main()
	}
	os.Exit(m.Run())
}

var all = flag.Bool("doubles.all", false, "TestOnDoubles does all parts, which takes ten minutes")

// TestOnDoubles: all checks are right on the doubles, but for those of what is not
// there; so on a GPU none fails by a mistake of its own. The backend's suite is left to
// the backend's tests, and without -doubles.all parts b and c to those of the programs.
func TestOnDoubles(t *testing.T) {
	cudatest.Use(t)
	o := &options{out: t.TempDir(), parts: []string{"a", "d"}, limit: 20 * time.Minute, nets: []string{"conv32"}, batches: []int{4}, only: []string{"bf16", "f32"}, body: true, steps: 3,
		size: size{Programs: 3, Hunt: time.Minute, Copied: 1 << 20, Fused: 1 << 16, Placed: 1, Product: 64, Images: []int{1}, Width: 4}, each: 5 * time.Minute, from: -1}
	switch {
	case *all:
		o.parts = []string{"a", "b", "c", "d"}
	case testing.Short():
		o.nets = nil // whose kernels take a quarter of a minute to compile
	}
	var out bytes.Buffer
	err := check(t.Context(), o, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "skipped") && !strings.Contains(line, "PyTorch") && !strings.Contains(line, "compute-sanitizer") && !strings.Contains(line, "headers") {
			t.Errorf("was not done: %s", line)
		}
	}
}
