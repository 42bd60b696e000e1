package job

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
)

// Devices are the values of --device.
const Devices = "auto, cpu, ref"

// maxThreads bounds the threads of a rank: more is a typing mistake.
func maxThreads() int { return max(64, 8*runtime.NumCPU()) }

// CheckDevice reports a --device or a --threads that OpenBackend cannot take.
func CheckDevice(device string, threads int) error {
	if !slices.Contains(strings.Split(Devices, ", "), device) {
		return Usage("unknown --device %q: want one of %s", device, Devices)
	}
	if threads < 0 || threads > maxThreads() {
		return Usage("want --threads from 1 to %d, or 0 to share the cores, got %d", maxThreads(), threads)
	}
	return nil
}

// OpenBackend opens a device: "auto" is the CPU. threads is per rank; 0 obeys
// OMP_NUM_THREADS, which ddplaunch sets, and without it shares the cores among
// the localRanks of this host.
func OpenBackend(device string, threads, localRanks int) (exec.Backend, error) {
	if err := CheckDevice(device, threads); err != nil {
		return nil, err
	}
	if device == "ref" {
		return ref.New(), nil
	}
	if threads == 0 {
		var err error
		if threads, err = defaultThreads(os.Getenv("OMP_NUM_THREADS"), localRanks); err != nil {
			return nil, err
		}
	}
	return cpu.New(cpu.Config{Threads: threads})
}

// defaultThreads reads OMP_NUM_THREADS, a number or one for each level of
// nesting, of which the first counts.
func defaultThreads(omp string, localRanks int) (int, error) {
	if omp == "" {
		return max(1, runtime.NumCPU()/max(1, localRanks)), nil
	}
	first, _, _ := strings.Cut(omp, ",")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || n < 1 || n > maxThreads() {
		return 0, fmt.Errorf("OMP_NUM_THREADS=%q: want a number of threads from 1 to %d, or unset it, or give --threads", omp, maxThreads())
	}
	return n, nil
}
