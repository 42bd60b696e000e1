package main

import "testing"

// CUDA takes devices up to the first entry that names none.
func TestCountGPUs(t *testing.T) {
	for list, want := range map[string]int{
		"": 0, "0": 1, "0,1, 3": 3, "0,-1,2": 1, "-1": 0, "NoDevFiles": 0, "0,none,1": 1,
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-GPU-8932f937/1/2": 2,
	} {
		if got := countGPUs([]string{"SLURM_GPUS_ON_NODE=7", "CUDA_VISIBLE_DEVICES=" + list}); got != want {
			t.Errorf("CUDA_VISIBLE_DEVICES=%q: %d GPUs, want %d", list, got, want)
		}
	}
	if got := countGPUs([]string{"SLURM_GPUS_ON_NODE=7"}); got != 7 {
		t.Errorf("%d of the 7 GPUs that Slurm gave", got)
	}
}
