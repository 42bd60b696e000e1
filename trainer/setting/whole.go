package setting

import "fmt"

// InRange reports a whole number, the value of name, that is below least or above most.
// What is too large can only be a typing mistake.
func InRange[T int | int64](name string, n, least, most T) error {
	switch {
	case n < least:
		return fmt.Errorf("want --%s of at least %d, got %d", name, least, n)
	case n > most:
		return fmt.Errorf("want --%s of at most %d, got %d", name, most, n)
	}
	return nil
}
