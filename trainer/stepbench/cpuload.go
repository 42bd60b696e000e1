package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"ebtrain/collective/processors"
)

// cpuLoad tells what share of the time of processors other programs take (stolen time
// included): of those that the ranks of this machine may use.
type cpuLoad struct {
	pids []int // of the ranks on this machine
	on   processors.Set

	began      time.Time
	busy, ours time.Duration
}

// start begins an interval.
func (l *cpuLoad) start() (err error) {
	l.began = time.Now()
	l.busy, l.ours, err = l.worked()
	return err
}

// stop ends the interval: other programs' share of those processors, from 0 to 1.
func (l *cpuLoad) stop() (float64, error) {
	busy, ours, err := l.worked()
	if err != nil {
		return 0, err
	}
	others := (busy - l.busy) - (ours - l.ours)
	return max(0, others.Seconds()) / (time.Since(l.began).Seconds() * float64(l.on.Count())), nil
}

// worked is for how long the processors have worked so far, and for how long for the ranks.
func (l *cpuLoad) worked() (busy, ours time.Duration, err error) {
	if busy, err = processors.WorkedOn(l.on); err != nil {
		return 0, 0, err
	}
	for _, pid := range l.pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, 0, fmt.Errorf("load of the machine: %w", err)
		}
		n, err := processTicks(string(stat))
		if err != nil {
			return 0, 0, err
		}
		ours += time.Duration(n) * processors.Tick
	}
	return busy, ours, nil
}

// processTicks are utime and stime of /proc/PID/stat. The name in parentheses
// may hold anything.
func processTicks(stat string) (int64, error) {
	end := strings.LastIndexByte(stat, ')')
	f := strings.Fields(stat[end+1:])
	if end < 0 || len(f) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat: want a name and at least 13 fields, got %q", stat)
	}
	return sumOf("/proc/PID/stat", f[11], f[12])
}

func sumOf(file string, fields ...string) (sum int64, err error) {
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += n
	}
	return sum, nil
}
