package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc, USER_HZ, which is 100 on every Linux
// that Go runs on.
const ticksPerSecond = 100

// cpuLoad tells what share of this machine's processor time other programs take
// (stolen time included), from /proc/stat.
type cpuLoad struct {
	pids  []int // of the ranks on this machine
	cores int

	began      time.Time
	busy, ours int64
}

// start begins an interval.
func (l *cpuLoad) start() (err error) {
	l.began = time.Now()
	l.busy, l.ours, err = l.ticks()
	return err
}

// stop ends the interval: other programs' share of all cores, from 0 to 1.
func (l *cpuLoad) stop() (float64, error) {
	busy, ours, err := l.ticks()
	if err != nil {
		return 0, err
	}
	others := (busy - l.busy) - (ours - l.ours)
	return max(0, float64(others)) / (ticksPerSecond * time.Since(l.began).Seconds() * float64(l.cores)), nil
}

func (l *cpuLoad) ticks() (busy, ours int64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("load of the machine: %w", err)
	}
	if busy, err = machineTicks(string(stat)); err != nil {
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
		ours += n
	}
	return busy, ours, nil
}

// machineTicks are the ticks that all cores were busy: user, nice, system, irq,
// softirq and steal of the first line of /proc/stat.
func machineTicks(stat string) (int64, error) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat: want a first line of cpu and 8 numbers, got %q", line)
	}
	return sumOf("/proc/stat", f[1], f[2], f[3], f[6], f[7], f[8])
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
