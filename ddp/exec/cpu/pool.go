package cpu

import (
	"sync"
	"sync/atomic"
)

// job is work that can be cut into n parts, the same way each time. Part i is
// done by one of the threads; worker is its number.
type job interface{ part(worker, i, n int) }

// pool runs jobs on a fixed number of threads: the caller and its workers.
// Threads claim the parts of a job one by one, so a worker that is late holds
// up nobody; what a part computes does not depend on who computes it.
type pool struct {
	threads int
	parts   int // of a shared job
	grain   int // work below which a job is not worth sharing

	job   job
	turn  atomic.Uint64 // number of the job, and of the next part (lower half)
	left  atomic.Int64  // parts that are not done
	sleep atomic.Bool   // the caller waits on done
	done  chan struct{}
	wake  []chan struct{} // by worker
	live  sync.WaitGroup
}

// grain is the number of elementary operations below which a job is not worth
// sharing: about ten microseconds.
const grain = 1 << 15

// patience is how often a thread looks again before it sleeps: a few
// microseconds.
const patience = 1 << 12

func newPool(threads, grain int) *pool {
	p := &pool{threads: threads, parts: 1, grain: grain, done: make(chan struct{}, 1)}
	if threads > 1 {
		p.parts = 4 * threads
	}
	for w := 1; w < threads; w++ {
		ch := make(chan struct{}, 1)
		p.wake = append(p.wake, ch)
		p.live.Go(func() { p.work(w, ch) })
	}
	return p
}

// run does all parts of j, alone if the work is small, and returns how many
// parts there were.
func (p *pool) run(j job, work int) int {
	if p.parts == 1 || work < p.grain {
		j.part(0, 0, 1)
		return 1
	}
	number := p.turn.Load()>>32 + 1
	p.job = j
	p.left.Store(int64(p.parts))
	p.turn.Store(number << 32)
	for _, ch := range p.wake {
		select {
		case ch <- struct{}{}:
		default: // it is awake, or will be
		}
	}
	p.claim(0, number)
	p.wait()
	return p.parts
}

// claim does parts of a job until there are none.
func (p *pool) claim(worker int, number uint64) {
	for {
		t := p.turn.Load()
		i := int(t & (1<<32 - 1))
		if t>>32 != number || i >= p.parts {
			return
		}
		if !p.turn.CompareAndSwap(t, t+1) {
			continue
		}
		p.job.part(worker, i, p.parts) // the job cannot change while a part is not done
		if p.left.Add(-1) == 0 && p.sleep.CompareAndSwap(true, false) {
			p.done <- struct{}{}
		}
	}
}

// wait returns when all parts are done.
func (p *pool) wait() {
	for range patience {
		if p.left.Load() == 0 {
			return
		}
	}
	p.sleep.Store(true)
	if p.left.Load() == 0 && p.sleep.CompareAndSwap(true, false) {
		return
	}
	<-p.done
}

// work is the life of a worker: it looks for the next job for a while, and
// then sleeps.
func (p *pool) work(w int, wake <-chan struct{}) {
	seen := uint64(0)
	for range wake {
		for idle := 0; idle < patience; idle++ {
			if number := p.turn.Load() >> 32; number != seen {
				p.claim(w, number)
				seen, idle = number, 0
			}
		}
	}
}

func (p *pool) close() {
	for _, ch := range p.wake {
		close(ch)
	}
	p.live.Wait()
}
