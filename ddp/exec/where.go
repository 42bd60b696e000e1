package exec

import "fmt"

// ErrorAt says where err happened: in which program, and in which scope and op of it.
// There may be no scope, and nothing but the program.
func ErrorAt(program, scope, op string, err error) error {
	where := fmt.Sprintf("program %q", program)
	for _, part := range []string{scope, op} {
		if part != "" {
			where += ": " + part
		}
	}
	return fmt.Errorf("%s: %w", where, err)
}
