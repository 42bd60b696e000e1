package collective

import (
	"errors"
	"fmt"
	"testing"
)

// TestError: an error says which collective it was, who reports and who is at fault, rank 0 as
// any other, and is what it wraps.
func TestError(t *testing.T) {
	lost := fmt.Errorf("%w: it has ended", ErrPeerLost)
	for peer, want := range map[int]string{
		-1: "all-reduce bucket 3, seq 8, rank 2: collective: peer lost: it has ended",
		0:  "all-reduce bucket 3, seq 8, rank 2 (peer 0): collective: peer lost: it has ended",
		5:  "all-reduce bucket 3, seq 8, rank 2 (peer 5): collective: peer lost: it has ended",
	} {
		var err error = &Error{Kind: AllReduce, Label: "bucket 3", Seq: 8, Rank: 2, Peer: peer, Err: lost}
		if err.Error() != want || !errors.Is(err, ErrPeerLost) || errors.Is(err, ErrAborted) {
			t.Errorf("got %q, want %q, which is ErrPeerLost", err, want)
		}
	}
}
