// Package subnormal says how an OS thread computes with subnormal numbers, those nearer
// to zero than 1.2e-38 in float32: as they are, or as zeros. Intel's processors take a
// hundred cycles and more for each of them, and long training makes many, so a backend
// may want zeros; what is added up for it elsewhere then has to be added up alike, or
// ranks, or runs, would differ in the last bits.
//
// The setting is the thread's: the caller has locked its goroutine to it (see
// runtime.LockOSThread). Threads that C code starts from there inherit it, those of Go's
// scheduler do not. Other processors than x86's compute with them always.
package subnormal

import "runtime"

// Counting runs f, which must not wait for anybody, with subnormal numbers as zeros or not.
func Counting(zeros bool, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was := Zeros()
	defer set(was) // also if f ends its goroutine, as a test that fails does
	set(zeros)
	f()
}

// Flush makes the thread count subnormal numbers as zero, as operands and as results.
func Flush() { set(true) }
