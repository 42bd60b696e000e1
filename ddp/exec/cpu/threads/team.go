// Package threads shares the work of one computation among a fixed set of
// threads: the caller and its workers. They claim the chunks of a job one by
// one, so that a thread that the machine keeps waiting holds up nobody; what a
// chunk computes does not depend on who computes it.
//
//	a job    ┌ chunk 0 ┬ chunk 1 ┬ chunk 2 ┬ … ┐  claimed in order, by whoever is free
//	Team       the caller and its workers
//	Pool       gives each thread a workspace
//	Jobs       cuts work into as many parts whatever it is, or leaves it whole
//
// Concurrency: a Team, and all Pools and Jobs on it, have one caller at a time.
package threads

import (
	"runtime"
	"sync"
	"sync/atomic"

	"ebtrain/collective/subnormal"
)

// Team is a set of threads. All that compute in turn share one: a worker that
// has just worked is awake for the next job.
type Team struct {
	job   func(chunk, thread int)
	state atomic.Uint64 // see claim
	left  atomic.Int64  // chunks not yet done
	sleep atomic.Bool   // the caller waits on done
	rest  atomic.Bool   // workers without work sleep at once
	done  chan struct{}
	wake  []chan struct{} // by worker
	ended sync.WaitGroup
}

const (
	// maxChunks is the most chunks that are shared out at once, see claim.
	maxChunks = 1<<16 - 1
	// patience is how often a thread looks again before it sleeps: about a tenth of
	// a millisecond. On a machine with other work, waking takes longer than that, as a
	// thread that sleeps has lost its core.
	patience = 1 << 16
)

// NewTeam starts n-1 workers, n at least 1. They count subnormal numbers as zero if
// the caller's OS thread does (see package subnormal).
func NewTeam(n int) *Team {
	t := &Team{done: make(chan struct{}, 1)}
	zeros := subnormal.Zeros()
	for i := 1; i < n; i++ {
		wake := make(chan struct{}, 1)
		t.wake = append(t.wake, wake)
		t.ended.Go(func() {
			if zeros {
				runtime.LockOSThread() // and never unlocked: the thread ends with the worker
				subnormal.Flush()
			}
			for range wake {
				t.attend(i)
			}
		})
	}
	return t
}

// Size is the number of threads.
func (t *Team) Size() int { return len(t.wake) + 1 }

// Do runs job for chunks 0 … chunks-1 and waits. The caller is thread 0.
func (t *Team) Do(chunks int, job func(chunk, thread int)) {
	if chunks <= 1 || t.Size() == 1 {
		for i := range chunks {
			job(i, 0)
		}
		return
	}
	t.share(min(chunks, maxChunks), job)
	for first := maxChunks; first < chunks; first += maxChunks {
		t.share(min(chunks-first, maxChunks), func(chunk, thread int) { job(first+chunk, thread) })
	}
}

// share is Do of at most maxChunks.
func (t *Team) share(chunks int, job func(chunk, thread int)) {
	t.job = job
	t.rest.Store(false)
	t.left.Store(int64(chunks))
	t.state.Store((t.state.Load()>>32+1)<<32 | uint64(chunks)<<16)
	for _, w := range t.wake {
		select {
		case w <- struct{}{}:
		default: // it is awake, or will be
		}
	}
	t.help(0)
	t.wait()
}

// wait returns when all chunks are done.
func (t *Team) wait() {
	for range patience {
		if t.left.Load() == 0 {
			return
		}
	}
	for t.left.Load() > 0 { // it may be woken early, see rouse
		t.sleep.Store(true)
		if t.left.Load() == 0 && t.sleep.CompareAndSwap(true, false) {
			return
		}
		<-t.done
	}
}

// rouse wakes the caller if it sleeps. A thread that has done the last chunk of a job may
// be kept waiting before it gets here, and then meet the caller asleep in a later one.
func (t *Team) rouse() {
	if t.sleep.CompareAndSwap(true, false) {
		t.done <- struct{}{}
	}
}

// attend runs the chunks of one job, and of those that follow soon.
func (t *Team) attend(thread int) {
	for idle := 0; idle < patience && !t.rest.Load(); idle++ {
		if t.help(thread) {
			idle = 0
		}
	}
}

// help runs chunks until none is left, and says whether there were any.
func (t *Team) help(thread int) (any bool) {
	for {
		chunk, ok := t.claim()
		if !ok {
			return any
		}
		any = true
		t.job(chunk, thread) // stays what it is until this chunk is done
		if t.left.Add(-1) == 0 {
			t.rouse()
		}
	}
}

// claim takes the next chunk of the current job. The state is one word, the
// job's number (32 bits), its chunks (16) and those claimed (16), so that a
// late worker can never claim a chunk of a job that is over.
func (t *Team) claim() (chunk int, ok bool) {
	for {
		s := t.state.Load()
		chunks, claimed := int(s>>16&0xffff), int(s&0xffff)
		if claimed == chunks {
			return 0, false
		}
		if t.state.CompareAndSwap(s, s+1) {
			return claimed, true
		}
	}
}

// Rest has workers that wait for the next job sleep now: threads that are not the
// team's are about to want the cores. No job is running.
func (t *Team) Rest() { t.rest.Store(true) }

// Close ends the workers. No job is running.
func (t *Team) Close() {
	for _, w := range t.wake {
		close(w)
	}
	t.ended.Wait()
}

// Part is the i-th of parts nearly equal ranges of 0 … n.
func Part(n, i, parts int) (lo, hi int) { return n * i / parts, n * (i + 1) / parts }
