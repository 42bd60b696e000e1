package host

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). They are the shared kind: the word lies in memory
// that several processes map.
const (
	futexWait = 0
	futexWake = 1
)

// sleep blocks while *word is value, at most for d. It may return early.
func sleep(word *atomic.Uint32, value uint32, d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_, _, e := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait,
		uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch e {
	case 0, unix.EAGAIN, unix.EINTR, unix.ETIMEDOUT:
	default: // a bad address or operation: a broken invariant of this package
		panic(errors.Join(errors.New("host: futex wait"), e))
	}
}

// wakeAll ends every sleep on word, in every process.
func wakeAll(word *atomic.Uint32) {
	_, _, e := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
	if e != 0 {
		panic(errors.Join(errors.New("host: futex wake"), e))
	}
}

// yield gives the processor to another thread of the machine.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
