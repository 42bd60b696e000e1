package host

import (
	"context"
	"net"
	"testing"
)

// TestCrowd has all ranks of a large world connect before any of them says who it is, as
// they have where the leader comes last: none makes room for another.
func TestCrowd(t *testing.T) {
	const ranks = silent + 64
	ln := testListener(t, "tcp4")
	var want []call
	for r := range ranks {
		want = append(want, call{forControl, r + 1})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		got, err := testIdentity(0, "job", "the right key").accept(ctx, ln, want, quiet)
		closeAll(got)
		done <- err
	}()
	conns := make([]net.Conn, ranks)
	for r := range conns {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
		conns[r] = c
	}
	refused, last := 0, error(nil)
	for r := ranks - 1; r >= 0; r-- { // the last is answered when all have been taken in
		if err := testIdentity(r+1, "job", "the right key").greet(conns[r], call{forControl, 0}); err != nil {
			refused, last = refused+1, err
		}
	}
	if refused > 0 {
		t.Errorf("of %d ranks %d were turned away: %v", ranks, refused, last)
		cancel()
	}
	if err := <-done; err != nil && refused == 0 {
		t.Error(err)
	}
}
