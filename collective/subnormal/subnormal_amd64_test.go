//go:build !noasm

package subnormal

import (
	"math"
	"runtime"
	"testing"
)

// least is a subnormal number that the compiler does not know.
var least = math.Float32frombits(1)

// A thread counts as it is told, and afterwards as before.
func TestCounting(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, outer := range []bool{false, true} {
		Counting(outer, func() {
			for _, zeros := range []bool{false, true} {
				Counting(zeros, func() {
					if sum := least + least; Zeros() != zeros || (sum == 0) != zeros {
						t.Errorf("zeros %v: says %v, and the sum is %g", zeros, Zeros(), sum)
					}
				})
				if Zeros() != outer {
					t.Errorf("outer %v is not as it was", outer)
				}
			}
		})
	}
	if Zeros() {
		t.Error("the thread is not as it was")
	}
}
