package array

import "ebtrain/ddp/exec/plan"

// Runs calls f(at, off, n, stride) for the pieces of the points start … start+n
// of the iteration space in which the accessed array is walked with one
// stride, 0 or 1: at counts from 0, off is the array's element.
func Runs(a plan.Access, start, n int, f func(at, off, n, stride int)) {
	k := len(a.Dims) - 1
	if k < 0 {
		f(0, start, n, 1)
		return
	}
	inner, stride := a.Dims[k], a.Strides[k]
	var at [8]int
	pos := start
	off := 0
	for i := k; i >= 0; i-- {
		at[i] = pos % a.Dims[i]
		pos /= a.Dims[i]
		off += at[i] * a.Strides[i]
	}
	for done := 0; done < n; {
		m := min(inner-at[k], n-done)
		f(done, off, m, stride)
		done += m
		off -= at[k] * stride
		at[k] = 0
		for i := k - 1; i >= 0; i-- {
			off += a.Strides[i]
			if at[i]++; at[i] < a.Dims[i] {
				break
			}
			off -= at[i] * a.Strides[i]
			at[i] = 0
		}
	}
}

// Period is p if the accessed array is repeated every p points, else 0.
func Period(a plan.Access) int {
	if len(a.Dims) == 2 && a.Strides[0] == 0 && a.Strides[1] == 1 {
		return a.Dims[1]
	}
	return 0
}

// Expand fills dst with the elements that points start … read.
func Expand[T Number](dst, src []T, a plan.Access, start int) {
	Runs(a, start, len(dst), func(at, off, n, stride int) {
		if stride == 1 {
			copy(dst[at:at+n], src[off:off+n])
			return
		}
		Fill(dst[at:at+n], src[off])
	})
}

// InRuns says whether each block of so many of an array's points is one run of
// the given stride, 0 or 1.
func InRuns(a plan.Access, block, stride int) bool {
	k := len(a.Dims) - 1
	return k >= 0 && a.Strides[k] == stride && a.Dims[k]%block == 0
}
