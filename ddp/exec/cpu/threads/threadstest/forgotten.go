// Package threadstest helps to test what runs on threads that live on.
package threadstest

import (
	"runtime"
	"time"
	"weak"
)

// Forgotten says whether nothing reaches what p points to, within a second: a worker that
// was interrupted where it had it in a register keeps it until it goes on.
func Forgotten[T any](p weak.Pointer[T]) bool {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		if runtime.GC(); p.Value() == nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
