// Package threads shares the work of one computation among a fixed set of
// threads: the caller and its workers. Each has a range of the chunks of a job,
// the same range of every job with as many, and takes them one by one; one that
// has none left takes those of others, so that a thread that the machine keeps
// waiting holds up nobody. What a chunk computes does not depend on who computes it.
//
//	a job    ┌ chunk 0 ┬ chunk 1 ┬ chunk 2 ┬ chunk 3 ┐  two threads: the first begins
//	         thread 0 →          ┆ thread 1 →           at 0, the other at 2
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
	spans []span       // by thread
	left  atomic.Int64 // chunks not yet done
	sleep atomic.Bool  // the caller waits on done
	done  chan struct{}
	wake  []chan struct{} // by worker
	ended sync.WaitGroup

	_      [120]byte     // workers without work look at lines that only a new job changes
	posted atomic.Uint32 // the number of the last job whose chunks are all shared out
	rest   atomic.Bool   // workers without work sleep at once
	_      [120]byte
}

const (
	// maxChunks is the most chunks that are shared out at once, see span.
	maxChunks = 1<<16 - 1
	// patience is how often a worker looks for a job before it sleeps: about a fifth of a
	// millisecond, however many threads there are. On a machine with other work, waking takes
	// longer than that, as a thread that sleeps has lost its core.
	patience = 3 << 17
	// patienceAtEnd is how often the caller looks whether the others are done: their last
	// chunks are under way.
	patienceAtEnd = 1 << 16
)

// NewTeam starts n-1 workers, n at least 1. They count subnormal numbers as zero if
// the caller's OS thread does (see package subnormal).
func NewTeam(n int) *Team {
	t := &Team{done: make(chan struct{}, 1), spans: make([]span, n)}
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
	t.deal(chunks)
	for _, w := range t.wake {
		select {
		case w <- struct{}{}:
		default: // it is awake, or will be
		}
	}
	t.help(0)
	t.wait()
}

// deal gives each thread its range of a new job's chunks. A thread that was near the
// memory of an earlier job's part, in its caches or its corner of the machine, is near to
// it now, as jobs are cut along the same axis.
func (t *Team) deal(chunks int) {
	job := t.posted.Load() + 1
	for i := range t.spans {
		lo, hi := Part(chunks, i, len(t.spans))
		t.spans[i].set(job, lo, hi)
	}
	t.posted.Store(job)
}

// wait returns when all chunks are done.
func (t *Team) wait() {
	for range patienceAtEnd {
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
	seen := uint32(0) // none has this number but each 2³²th, which others do
	for idle := 0; idle < patience && !t.rest.Load(); idle++ {
		if job := t.look(thread, seen); job != seen {
			seen, idle = job, 0
		}
	}
}

// look runs chunks if a job was posted since the one that was seen last, and returns what is
// seen now. Chunks of a job only become fewer, so where none was left none is now. Help may
// come upon a next job while that is shared out, and miss some of it: it is posted later
// than what is seen, and so looked at again.
func (t *Team) look(thread int, seen uint32) uint32 {
	job := t.posted.Load()
	if job != seen {
		t.help(thread)
	}
	return job
}

// help runs chunks until none is left.
func (t *Team) help(thread int) {
	for {
		chunk, ok := t.claim(thread)
		if !ok {
			return
		}
		t.job(chunk, thread) // stays what it is until this chunk is done
		if t.left.Add(-1) == 0 {
			t.rouse()
		}
	}
}

// claim takes the thread's next chunk of the current job, or else the last one of the
// threads that follow it.
func (t *Team) claim(thread int) (chunk int, ok bool) {
	if chunk, ok = t.spans[thread].first(); ok {
		return chunk, true
	}
	for i := 1; i < len(t.spans) && !ok; i++ {
		chunk, ok = t.spans[(thread+i)%len(t.spans)].last()
	}
	return chunk, ok
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
