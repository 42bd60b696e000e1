package host

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

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

// TestWhoseDoing: an abort is a rank's own doing unless it says that another is at fault, or only
// hands on, from a group of the same ranks, what another has found out. What sort it is it says once.
func TestWhoseDoing(t *testing.T) {
	theirs := &failure{record: record{codeAborted, 0, -1, "enough"}, remote: true}
	ours := &failure{record: record{codeAborted, 1, -1, "enough"}}
	for _, c := range []struct {
		cause error
		own   bool
		says  string // beside what sort it is
	}{
		{errors.New("odd"), true, ": odd"},
		{nil, true, ": no cause given"},
		{&collective.Error{Kind: collective.Barrier, Label: "dinner", Rank: 1, Peer: 2, Err: errors.New("odd")}, false, ": barrier dinner, seq 0, rank 1 (peer 2): odd"},
		{&collective.Error{Kind: collective.Barrier, Label: "dinner", Rank: 1, Peer: -1, Err: errors.New("odd")}, true, ": barrier dinner, seq 0, rank 1: odd"},
		{fmt.Errorf("below: %w", theirs), false, " by rank 0: enough"},
		{fmt.Errorf("below: %w", ours), true, ": enough"},
	} {
		f := abortedBy(1, c.cause)
		if errors.Is(f, collective.ErrOwnAbort) != c.own || f.Error() != collective.ErrAborted.Error()+c.says {
			t.Errorf("because of %v it says %q, its own doing: %v, want %q, %v", c.cause, f, errors.Is(f, collective.ErrOwnAbort), c.says, c.own)
		}
	}
	if got, want := abortedBy(1, fmt.Errorf("%w: odd", collective.ErrMismatch)).Error(), "collective: ranks disagree: odd"; got != want {
		t.Errorf("a mismatch says %q, want %q", got, want)
	}
}

// TestOwnAbortComesBack: a rank that has ended one group hears of that in another, over the same
// ranks, perhaps from others first: by whatever way, it is its own doing, and nobody else's.
func TestOwnAbortComesBack(t *testing.T) {
	for _, hosts := range [][]string{{"a", "a"}, {"a", "b"}} {
		exchanges := MemExchange(2)
		comms := make([]*Comm, 2)
		var wg sync.WaitGroup
		for r := range comms {
			wg.Go(func() {
				c, err := New(t.Context(), Config{Rank: r, Size: 2, Hosts: hosts, Job: "job", Key: []byte("the key of the test"), ListenIP: "127.0.0.1", Exchange: exchanges[r]})
				if err != nil {
					t.Error(err)
				}
				comms[r] = c
			})
		}
		if wg.Wait(); t.Failed() {
			return
		}
		comms[0].peers.tell(record{codeAborted, 1, -1, "enough"})
		<-comms[1].Failed()
		if err := comms[1].Failure(); !errors.Is(err, collective.ErrOwnAbort) || strings.Contains(err.Error(), "by rank") {
			t.Errorf("hosts %q: rank 1 hears of its own abort: %v", hosts, err)
		}
		err := comms[1].Do(t.Context(), collective.Request{Kind: collective.Barrier})
		if e, ok := errors.AsType[*collective.Error](err); !ok || e.Peer != -1 {
			t.Errorf("hosts %q: got %v, want nobody else to be at fault", hosts, err)
		}
		for _, c := range comms {
			shut(t, c)
		}
	}
}

// TestCloseAwaitsReaders: what listens on connections looks at memory that Close takes away;
// and who closes a second time returns when that is gone, too.
func TestCloseAwaitsReaders(t *testing.T) {
	comms, err := NewLocal(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	read, closed := make(chan struct{}), make(chan struct{})
	comms[0].peers.readers.Go(func() { <-read })
	for range 2 {
		go func() {
			shut(t, comms[0])
			closed <- struct{}{}
		}()
	}
	select {
	case <-closed:
		t.Error("it is closed, and somebody reads")
		close(read)
	case <-time.After(20 * time.Millisecond): // both have had time
		close(read)
		<-closed
	}
	<-closed
}
