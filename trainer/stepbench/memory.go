package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// memory counts what this process allocates in the timed steps, and by how much
// its resident size grows from the begin of the first to the end of the last.
type memory struct {
	objects uint64
	begun   uint64 // objects when the interval began
	stats   runtime.MemStats

	first, last int64 // resident bytes; first is 0 before the first interval
}

// start begins an interval. It stops the world for some microseconds.
func (m *memory) start() (err error) {
	if m.first == 0 {
		if m.first, err = resident(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&m.stats)
	m.begun = m.stats.Mallocs
	return nil
}

// stop ends the interval.
func (m *memory) stop() (err error) {
	runtime.ReadMemStats(&m.stats)
	m.objects += m.stats.Mallocs - m.begun
	m.last, err = resident()
	return err
}

// resident is how much memory of this process is in RAM, in bytes.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("resident size: %w", err)
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0, fmt.Errorf("resident size: /proc/self/statm: want at least 2 numbers, got %q", text)
	}
	pages, err := sumOf("/proc/self/statm", f[1])
	return pages * int64(os.Getpagesize()), err
}
