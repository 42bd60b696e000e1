package data

import (
	"fmt"
	"math"
	"strings"
)

// MisnamedError is a mistake in what somebody called a data set, its settings included, or
// a split of it. No file is at fault, and trying again is of no use.
type MisnamedError struct {
	Split bool // it is the name of the split
	Err   error
}

func (e *MisnamedError) Error() string { return e.Err.Error() }
func (e *MisnamedError) Unwrap() error { return e.Err }

// NoSplit says that a data set has other splits than the one asked for.
func NoSplit(set, split string, has []string) error {
	return &MisnamedError{Split: true, Err: fmt.Errorf("%s: no split %q; it has %s", set, split, strings.Join(has, ", "))}
}

// CheckCount reports a number of samples that a split of a set that is made on the fly
// cannot have; name is what the number is called.
func CheckCount(name string, n int64) error {
	if n < 1 || n > math.MaxUint32 {
		return fmt.Errorf("%s is %d, expected 1 to %d samples", name, n, uint32(math.MaxUint32))
	}
	return nil
}
