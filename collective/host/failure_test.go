package host

import (
	"errors"
	"fmt"
	"testing"

	"ebtrain/collective"
)

// TestBlameOfSeveral: of a cause that is several things at once all ranks are told the same
// one each time, and if a rank is lost, that.
func TestBlameOfSeveral(t *testing.T) {
	lost := &collective.Error{Kind: collective.Barrier, Peer: 2, Err: fmt.Errorf("%w: rank 2", collective.ErrPeerLost)}
	for _, c := range []struct {
		cause error
		want  error
	}{
		{errors.Join(fmt.Errorf("%w: odd", collective.ErrInvalid), lost, collective.ErrMismatch), collective.ErrPeerLost},
		{errors.Join(collective.ErrMismatch, collective.ErrInvalid), collective.ErrMismatch},
	} {
		for range 20 {
			told := &failure{record: abortedBy(1, c.cause).record, remote: true} // as another rank hears it
			if !errors.Is(told, c.want) {
				t.Fatalf("of %q another rank is told %q, want %q", c.cause, told, c.want)
			}
		}
	}
	if f := abortedBy(1, lost); f.peer != 2 || f.rank != 1 {
		t.Errorf("rank 2 is lost, and rank %d says that it is rank %d", f.rank, f.peer)
	}
}
