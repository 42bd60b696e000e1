// Package threads shares the work of one computation among a fixed set of
// threads: the caller and its workers. They claim the chunks of a job one by
// one, so that a thread that the machine keeps waiting holds up nobody; what a
// chunk computes does not depend on who computes it.
//
// Concurrency: a Pool has one caller at a time.
package threads

import (
	"sync"
	"sync/atomic"
)

// Pool is a set of threads, each with a workspace of its own.
type Pool[W any] struct {
	spaces []*W
	job    func(chunk int, ws *W)
	state  atomic.Uint64 // see claim
	left   atomic.Int64  // chunks not yet done
	wake   []chan struct{}
	done   chan struct{} // the last chunk is done
	ended  sync.WaitGroup
}

// New starts threads-1 workers; space makes the workspace of a thread.
func New[W any](threads int, space func(thread int) *W) *Pool[W] {
	p := &Pool[W]{done: make(chan struct{}, 1)}
	for i := range max(threads, 1) {
		p.spaces = append(p.spaces, space(i))
	}
	for _, ws := range p.spaces[1:] {
		wake := make(chan struct{}, 1)
		p.wake = append(p.wake, wake)
		p.ended.Go(func() {
			for range wake {
				p.attend(ws)
			}
		})
	}
	return p
}

// Threads is the number of threads.
func (p *Pool[W]) Threads() int { return len(p.spaces) }

// Do runs f for chunks 0 … chunks-1, at most MaxChunks, and waits. If alone,
// all of them run on the caller: waking others would take longer.
func (p *Pool[W]) Do(alone bool, chunks int, f func(chunk int, ws *W)) {
	if alone || chunks <= 1 || p.Threads() == 1 {
		for i := range chunks {
			f(i, p.spaces[0])
		}
		return
	}
	p.job = f
	p.left.Store(int64(chunks))
	p.state.Store((p.state.Load()>>32+1)<<32 | uint64(chunks)<<16)
	for _, w := range p.wake {
		select {
		case w <- struct{}{}:
		default: // it has not taken note of the last job; it will see this one
		}
	}
	p.help(p.spaces[0])
	for range spins {
		if p.left.Load() == 0 {
			break
		}
	}
	<-p.done
	p.job = nil
}

const (
	// MaxChunks is the most chunks of a job.
	MaxChunks = 1<<16 - 1
	// spins bounds the wait for others' last chunks, and for the next job,
	// before sleeping: some microseconds, less than it takes to be woken.
	spins = 1 << 13
)

// attend runs the chunks of one job, and of those that follow soon.
func (p *Pool[W]) attend(ws *W) {
	for idle := 0; idle < spins; idle++ {
		if p.help(ws) {
			idle = 0
		}
	}
}

// help runs chunks until none is left, and says whether there were any.
func (p *Pool[W]) help(ws *W) (any bool) {
	for {
		chunk, ok := p.claim()
		if !ok {
			return any
		}
		any = true
		p.job(chunk, ws) // stays what it is until this chunk is done
		if p.left.Add(-1) == 0 {
			p.done <- struct{}{}
		}
	}
}

// claim takes the next chunk of the current job. The state is one word, the
// job's number (32 bits), its chunks (16) and those claimed (16), so that a
// late worker can never claim a chunk of a job that is over.
func (p *Pool[W]) claim() (chunk int, ok bool) {
	for {
		s := p.state.Load()
		chunks, claimed := int(s>>16&0xffff), int(s&0xffff)
		if claimed == chunks {
			return 0, false
		}
		if p.state.CompareAndSwap(s, s+1) {
			return claimed, true
		}
	}
}

// Close ends the workers. No job is running.
func (p *Pool[W]) Close() {
	for _, w := range p.wake {
		close(w)
	}
	p.ended.Wait()
}

// Part is the i-th of parts nearly equal ranges of 0 … n.
func Part(n, i, parts int) (lo, hi int) { return n * i / parts, n * (i + 1) / parts }

// Each calls f with the workspace of every thread. No job is running.
func (p *Pool[W]) Each(f func(ws *W)) {
	for _, ws := range p.spaces {
		f(ws)
	}
}
