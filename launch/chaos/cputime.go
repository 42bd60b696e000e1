package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTime is what the living processes of the job have had of the processors, and
// what of it the launcher of node 0.
func (j *job) processorTime() (all, first time.Duration) {
	for _, pid := range j.processes() {
		t := timeOf(pid)
		all += t
		if pid == j.nodes[0].cmd.Process.Pid {
			first = t
		}
	}
	return all, first
}

// timeOf is the processor time of a process; of one that has ended, nothing.
func timeOf(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		first, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// idleTime is for how long the machine's processors have had nothing to do, taken
// together. The kernel counts it in hundredths of a second.
func idleTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait …
	if len(f) < 6 {
		return 0
	}
	idle, _ := strconv.ParseInt(f[4], 10, 64)
	disk, _ := strconv.ParseInt(f[5], 10, 64)
	return time.Duration(idle+disk) * 10 * time.Millisecond
}
