package cuda

import (
	"runtime"
	"sync"
)

// thread runs functions one after the other on one OS thread.
type thread struct {
	jobs chan func()
	once sync.Once
	quit chan struct{} // closed by stop
	done chan struct{} // closed when the thread has ended
}

func startThread() *thread {
	t := &thread{jobs: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go t.run()
	return t
}

func (t *thread) run() {
	// Never unlocked: the thread, with the context that is current on it, ends
	// with the goroutine.
	runtime.LockOSThread()
	defer close(t.done)
	for {
		select {
		case job := <-t.jobs:
			job()
		case <-t.quit:
			return
		}
	}
}

// do runs a function on the thread, or returns ErrClosed.
func (t *thread) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case t.jobs <- func() { result <- f() }:
		return <-result
	case <-t.quit:
		return ErrClosed
	}
}

// stop ends the thread after the function that it runs.
func (t *thread) stop() {
	t.once.Do(func() { close(t.quit) })
	<-t.done
}

// bindThread binds the goroutine to its OS thread until the function that it
// returns is called.
func bindThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
