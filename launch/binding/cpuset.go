package binding

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// most is the number of processors that a set can hold.
const most = len(unix.CPUSet{}) * strconv.IntSize

// parse reads a list as the kernel writes it: 0-3,8, or nothing.
func parse(s string) (set unix.CPUSet, err error) {
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b < a || b >= most {
			return unix.CPUSet{}, fmt.Errorf("%q in %q: want processors below %d, as in 0-3,8", part, s, most)
		}
		for ; a <= b; a++ {
			set.Set(a)
		}
	}
	return set, nil
}

// format is the list that parse reads.
func format(set unix.CPUSet) string {
	var b strings.Builder
	for cpu := range members(set) {
		if cpu > 0 && set.IsSet(cpu-1) {
			continue // of a range that has been written
		}
		last := cpu
		for last+1 < most && set.IsSet(last+1) {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if b.WriteString(strconv.Itoa(cpu)); last > cpu {
			fmt.Fprintf(&b, "-%d", last)
		}
	}
	return b.String()
}

// members are the processors of a set, in order.
func members(set unix.CPUSet) iter.Seq[int] {
	return func(yield func(int) bool) {
		for cpu := range most {
			if set.IsSet(cpu) && !yield(cpu) {
				return
			}
		}
	}
}

// first is the first processor of a set, which is not empty.
func first(set unix.CPUSet) int {
	for cpu := range members(set) {
		return cpu
	}
	panic("binding: no processor")
}

// add adds the processors of other to set.
func add(set *unix.CPUSet, other unix.CPUSet) {
	for i := range set {
		set[i] |= other[i]
	}
}

// both are the processors in a and b.
func both(a, b unix.CPUSet) unix.CPUSet {
	for i := range a {
		a[i] &= b[i]
	}
	return a
}
