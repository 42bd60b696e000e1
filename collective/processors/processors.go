// Package processors tells how much the processors of this machine work, whoever has
// them do it, and how much of it for this process: a time that was measured says little
// without.
package processors

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tick is the unit of times in /proc, USER_HZ: a hundredth of a second on every Linux
// that Go runs on.
const Tick = 10 * time.Millisecond

// Load is how many threads have had or wanted a processor, over the last minute; -1 if
// that is not known.
func Load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	x, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return x
}

// Model is what the processors of this machine are called, or their architecture where the
// system does not say.
func Model() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Worked is for how long all processors have worked so far, taken together, or were
// taken away by who runs this virtual machine.
func Worked() (time.Duration, error) {
	return workedBy(worked)
}

// WorkedOn is Worked of some processors.
func WorkedOn(on Set) (time.Duration, error) {
	return workedBy(func(stat string) (time.Duration, error) { return workedOn(stat, on) })
}

func workedBy(read func(stat string) (time.Duration, error)) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("how much the processors have worked: %w", err)
	}
	return read(string(text))
}

// worked reads the first line of /proc/stat, which is of all processors.
func worked(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat: want a first line of cpu and 8 numbers, got %q", line)
	}
	return busy(f)
}

// workedOn reads the lines of some processors. A container's own /proc/stat (LXCFS) has only the
// processors that the container may use, under numbers of its own: where one is missing, all of
// them are meant.
func workedOn(stat string, on Set) (sum time.Duration, err error) {
	found := 0
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 9 {
			continue
		}
		number, _ := strings.CutPrefix(f[0], "cpu")
		cpu, err := strconv.Atoi(number)
		if err != nil || !on.IsSet(cpu) { // no line of a processor, or of another
			continue
		}
		d, err := busy(f)
		if err != nil {
			return 0, err
		}
		sum, found = sum+d, found+1
	}
	if found < on.Count() {
		return worked(stat)
	}
	return sum, nil
}

// busy is user, nice, system, irq, softirq and steal of a line of /proc/stat, which leaves out
// idle and iowait.
func busy(f []string) (sum time.Duration, err error) {
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += time.Duration(n) * Tick
	}
	return sum, nil
}

// Own is the time of processors that this process has had, with all its threads.
func Own() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // of itself, into memory of its own
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
