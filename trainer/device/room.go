package device

import (
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
)

// DoesNotFit is err; if it says that a program, of what, needs more than one of so many ranks
// may have of a memory, with whose that is and what to do. What a full GPU says has both
// already.
func DoesNotFit(err error, what string, in Store, ranks int, advice string) error {
	short, ok := errors.AsType[*exec.MemoryError](err)
	if !ok {
		return err
	}
	where := "the memory of " + in.Of
	if !in.Own && ranks > 1 {
		where += fmt.Sprintf(", shared by %d ranks", ranks)
	}
	return fmt.Errorf("%s does not fit into %s: %w: %s", what, where, short, advice)
}
