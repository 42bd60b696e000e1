package eval

import "fmt"

// NotFiniteError says that numbers of a model are not finite, so that nothing can be
// measured by them: it has diverged, and would give the same again.
type NotFiniteError struct{ Text string }

func (e *NotFiniteError) Error() string { return e.Text }

// NotFinite is a NotFiniteError.
func NotFinite(format string, args ...any) error {
	return &NotFiniteError{fmt.Sprintf(format, args...)}
}
