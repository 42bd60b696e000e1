package host

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"ebtrain/collective"
)

// patience is how long a rank that finds a broken connection or an abort
// without its record waits to be told why.
const patience = time.Second

// alarm ends the group: it keeps the first failure and tells every rank that can
// be reached. It may be used from any goroutine.
type alarm struct {
	*peers
	first  atomic.Pointer[failure]
	raised chan struct{} // closed when there is a failure

	telling sync.RWMutex // held for reading while peers are told
	silent  bool
}

// failure is why the group ended, nil while it has not.
func (a *alarm) failure() *failure { return a.first.Load() }

// raise ends the group, here and on every rank that can be reached. Only the
// first failure counts.
func (a *alarm) raise(f *failure) {
	a.telling.RLock()
	defer a.telling.RUnlock()
	if a.silent || !a.first.CompareAndSwap(nil, f) {
		return
	}
	close(a.raised)
	a.tell(f.record)
}

// heard raises what another rank has told of, or this one: what it has said of another group
// of the same ranks may come back from there sooner than by itself.
func (a *alarm) heard(r record) { a.raise(a.told(r)) }

func (a *alarm) told(r record) *failure {
	return &failure{record: r, remote: r.rank != a.topo.rank}
}

// silence makes raise do nothing any more: this rank closes.
func (a *alarm) silence() {
	a.telling.Lock()
	defer a.telling.Unlock()
	a.silent = true
}

// abort raises what a caller, or this rank itself, gives up for.
func (a *alarm) abort(cause error) { a.raise(abortedBy(a.topo.rank, cause)) }

// gone is that peer is gone.
func (a *alarm) gone(peer int, how string, err error) *failure {
	text := fmt.Sprintf("rank %d: %s", peer, how)
	if err != nil && !errors.Is(err, io.EOF) {
		text += ": " + err.Error()
	}
	return found(a.topo.rank, codePeerLost, peer, text)
}

// conclude ends the group because of err, unless it has ended already, and is
// the group's failure.
func (a *alarm) conclude(err error) error {
	var link *linkError
	var known *failure
	switch {
	case errors.Is(err, errBarrier): // another rank of this host has said why, or is about to
		a.await(100*time.Microsecond, func() *failure {
			if r, ok := a.arena.why(); ok {
				return a.told(r)
			}
			return nil
		}, found(a.topo.rank, codeAborted, -1, "a rank of this host ended the group and died before it said why"))
	case errors.As(err, &link): // the control connection says why data broke off
		a.await(time.Millisecond, func() *failure {
			if a.mesh.hasLeft(link.rank) {
				return a.gone(link.rank, closed, nil)
			}
			return nil
		}, a.gone(link.rank, "its connection broke", link.err))
	case errors.As(err, &known):
		a.raise(known)
	default:
		a.abort(err)
	}
	if f := a.failure(); f != nil {
		return f
	}
	return fmt.Errorf("%w: %w", collective.ErrAborted, err)
}

// closed is how a peer is gone that said farewell.
const closed = "it has closed its communicator"

// await looks every so often for a failure, and raises one if it finds it in
// time, else the other.
func (a *alarm) await(every time.Duration, look func() *failure, otherwise *failure) {
	for end := time.Now().Add(patience); a.failure() == nil && time.Now().Before(end); time.Sleep(every) {
		if f := look(); f != nil {
			otherwise = f
			break
		}
	}
	a.raise(otherwise)
}
