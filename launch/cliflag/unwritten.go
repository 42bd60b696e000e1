package cliflag

import (
	"errors"
	"fmt"
	"syscall"
)

// Unwritten is the error of a file of a flag that could not be written, with what to do where
// the disk is full; instead is what else may be given, as "another --out".
func Unwritten(flag, instead string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s: %w: the disk is full: make room there, or give %s", flag, err, instead)
	}
	return fmt.Errorf("%s: %w", flag, err)
}
