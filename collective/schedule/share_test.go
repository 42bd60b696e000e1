package schedule

import "testing"

func TestShare(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000, 1 << 20} {
		for parts := 1; parts <= 9; parts++ {
			at := 0
			for i := range parts {
				lo, hi := Share(n, parts, i)
				if lo != at || hi < lo || hi > n || i < parts-1 && hi < n && hi%64 != 0 {
					t.Fatalf("share(%d, %d, %d) is [%d, %d), after %d", n, parts, i, lo, hi, at)
				}
				at = hi
			}
			if at != n {
				t.Fatalf("share(%d, %d) ends at %d", n, parts, at)
			}
		}
	}
}
