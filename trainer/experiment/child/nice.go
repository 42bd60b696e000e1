package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// most is the largest niceness.
const most = 19

// lower makes this thread nicer, which a child inherits, and returns how nice it is.
func lower(by int) (int, error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("getpriority: %w", err)
	}
	const offset = 20 // the kernel answers 20 less the niceness
	nice := min(offset-raw+by, most)
	if by == 0 {
		return nice, nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
		return 0, fmt.Errorf("setpriority: %w", err)
	}
	return nice, nil
}

// lowerSession makes the session of process pid nicer. Kernels with autogrouping share
// the processors out among sessions first, and compare what is within a session only: by
// its own niceness a process of another session than the user's gives way to nobody
// there [sched(7)]. Where there is no autogrouping nothing is done.
func lowerSession(pid, nice int) error {
	file := fmt.Sprintf("/proc/%d/autogroup", pid)
	for range 20 {
		err := os.WriteFile(file, []byte(strconv.Itoa(nice)), 0)
		switch {
		case errors.Is(err, syscall.EAGAIN): // one such request in a tenth of a second
			time.Sleep(100 * time.Millisecond)
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH), errors.Is(err, syscall.EINVAL): // not of this kernel, or the process has ended
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %w, again and again", file, syscall.EAGAIN)
}
