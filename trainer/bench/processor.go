package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// processor is the time of processors that this process has had, with all its threads.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // of itself, into memory of its own
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
