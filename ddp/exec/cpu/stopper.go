package cpu

import (
	"context"
	"sync"
	"time"
)

// stopper is the context of a run. It is made once for many runs, so that a
// run allocates nothing, and ends when it is stopped or the context of Launch
// ends.
type stopper struct {
	parent context.Context // of Launch
	once   sync.Once
	done   chan struct{}
	mu     sync.Mutex
	err    error
}

func newStopper() *stopper { return &stopper{parent: context.Background(), done: make(chan struct{})} }

func (s *stopper) stop(cause error) {
	s.once.Do(func() {
		s.mu.Lock()
		s.err = cause
		s.mu.Unlock()
		close(s.done)
	})
}

// cause is why it was stopped, nil if it was not.
func (s *stopper) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.parent.Err() != nil {
		return context.Cause(s.parent)
	}
	return s.err
}

func (s *stopper) Deadline() (time.Time, bool) { return s.parent.Deadline() }
func (s *stopper) Done() <-chan struct{}       { return s.done }
func (s *stopper) Err() error                  { return s.cause() }
func (s *stopper) Value(key any) any           { return s.parent.Value(key) }
