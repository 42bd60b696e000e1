package main

import (
	"strings"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda"
)

// TestSuite: tests run in a process of their own and are counted; those that fail, or that
// are none, are an error.
func TestSuite(t *testing.T) {
	cudatest.Use(t)
	staged := task{Tests: groupOf, Transport: cuda.TransportStaged, Most: 2}
	_, numbers, err := suite(t.Context(), staged)
	if n, ok := numbers["tests"].(int); err != nil || !ok || n < 5 {
		t.Errorf("got %v, %v, want several tests", numbers, err)
	}
	t.Setenv(cudatest.Prefix+"FAULT", "cuMemHostAlloc=0=2")
	if _, _, err := suite(t.Context(), staged); err == nil || !strings.Contains(err.Error(), "the tests failed") {
		t.Errorf("without memory: got %v", err)
	}
}

// TestRanksOf: which checks are of ranks of NCCL that share a GPU, and of how many.
func TestRanksOf(t *testing.T) {
	for name, want := range map[string]int{
		"losses of 2 ranks on one GPU, NCCL, captured":                          2,
		"colltest, NCCL, 4 processes on one GPU":                                4,
		"a rank killed inside a captured step of 2 ranks on one GPU, NCCL":      2,
		"a rank that aborts inside a captured step of 2 ranks on one GPU, NCCL": 2,
		"colltest, staged, 4 processes on one GPU":                              0,
		"colltest, NCCL, 1 to 4 ranks in a process":                             0,
	} {
		if got := ranksOf(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
