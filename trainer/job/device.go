package job

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
)

// Devices are the values of --device.
const Devices = "auto, cpu, ref"

// OpenBackend opens a device: "auto" is the CPU. threads is per rank; 0 shares
// the cores among the localRanks of this host, or obeys OMP_NUM_THREADS.
func OpenBackend(device string, threads, localRanks int) (exec.Backend, error) {
	if threads < 0 {
		return nil, fmt.Errorf("want --threads of at least 1, or 0 to share the cores, got %d", threads)
	}
	switch device {
	case "auto", "cpu":
		if threads == 0 {
			threads = defaultThreads(localRanks)
		}
		return cpu.New(cpu.Config{Threads: threads})
	case "ref":
		return ref.New(), nil
	}
	return nil, fmt.Errorf("unknown --device %q: want one of %s", device, Devices)
}

func defaultThreads(localRanks int) int {
	if n, err := strconv.Atoi(os.Getenv("OMP_NUM_THREADS")); err == nil && n > 0 {
		return n
	}
	return max(1, runtime.NumCPU()/max(1, localRanks))
}
