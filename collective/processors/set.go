package processors

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Set is some of the processors of a machine, by the kernel's numbers.
type Set struct{ unix.CPUSet }

// Of is the set of those numbers: for sets that are written in code, as tests of several packages do.
func Of(cpus ...int) (s Set) {
	for _, c := range cpus {
		s.Set(c)
	}
	return s
}

// Allowed are the processors that this thread may run on. A thread that is bound to one for a
// while has no other; those of the process are asked for before there is such a thread.
func Allowed() (s Set, err error) {
	if err := unix.SchedGetaffinity(0, &s.CPUSet); err != nil {
		return s, fmt.Errorf("processors that this process may run on: %w", err)
	}
	return s, nil
}

// Count is how many there are.
func (s Set) Count() int { return s.CPUSet.Count() }

// Or are the processors that are in one of both sets.
func (s Set) Or(o Set) Set {
	for i := range s.CPUSet {
		s.CPUSet[i] |= o.CPUSet[i]
	}
	return s
}

// Meets says whether both sets have a processor in common.
func (s Set) Meets(o Set) bool {
	for i := range s.CPUSet {
		if s.CPUSet[i]&o.CPUSet[i] != 0 {
			return true
		}
	}
	return false
}

// Machine names the machine that this process is on, until it is booted anew: hosts of other
// names, such as network namespaces and containers, share its processors. "" if the system does
// not say.
func Machine() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}
