package arraytest

import (
	"testing"

	"ebtrain/collective/subnormal"
)

// EitherWay runs f with subnormal numbers as they are, and then as zeros, which is how the
// backend runs kernels.
func EitherWay(t testing.TB, f func()) {
	for _, zeros := range []bool{false, true} {
		subnormal.Counting(zeros, func() {
			defer func() {
				if zeros && t.Failed() {
					t.Log("subnormal numbers count as zeros")
				}
			}()
			f()
		})
	}
}
