package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/variable"
)

// maxProcs bounds --nproc-per-node: more is a typing mistake.
const maxProcs = 1024

// countProcs turns the value of --nproc-per-node into a number of ranks.
func countProcs(s string, environ []string) (int, error) {
	switch strings.ToLower(s) {
	case "auto":
		return max(1, countGPUs(environ)), nil
	case "cpu":
		return runtime.GOMAXPROCS(0), nil
	case "gpu":
		n := countGPUs(environ)
		if n == 0 {
			return 0, cliflag.Usage("--nproc-per-node gpu: this node shows no GPU (CUDA_VISIBLE_DEVICES, SLURM_GPUS_ON_NODE, /proc/driver/nvidia): give a number, or auto for one rank where there is none")
		}
		return n, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxProcs {
		return 0, cliflag.Usage("--nproc-per-node %q: want a number from 1 to %d, or gpu, cpu, auto", s, maxProcs)
	}
	return n, nil
}

// countGPUs counts the devices in CUDA_VISIBLE_DEVICES, as CUDA does up to the
// first that is none (-1; NoDevFiles, as some batch systems have it), or those that Slurm has given to the job on this node, or that the
// NVIDIA driver lists.
func countGPUs(environ []string) int {
	if list, ok := variable.Lookup(environ, "CUDA_VISIBLE_DEVICES"); ok {
		n := 0
		for id := range strings.SplitSeq(list, ",") {
			if !isGPU(strings.TrimSpace(id)) {
				break
			}
			n++
		}
		return n
	}
	if n, err := strconv.Atoi(variable.Get(environ, "SLURM_GPUS_ON_NODE")); err == nil {
		return n
	}
	entries, err := os.ReadDir("/proc/driver/nvidia/gpus")
	if err != nil {
		return 0 // no driver, no GPU
	}
	return len(entries)
}

// isGPU says whether an entry of CUDA_VISIBLE_DEVICES names a device: by its number, its
// UUID or that of a part of it.
func isGPU(id string) bool {
	if n, err := strconv.Atoi(id); err == nil {
		return n >= 0
	}
	return strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-")
}
