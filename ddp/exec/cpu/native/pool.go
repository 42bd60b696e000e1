package native

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// pool is a fixed set of threads: the caller and its workers. They claim the
// chunks of a job one by one, so that a thread that the machine keeps waiting
// holds up nobody; what a chunk computes does not depend on who computes it.
type pool struct {
	spaces []*workspace // one a thread
	job    func(chunk int, ws *workspace)
	state  atomic.Uint64 // see claim
	left   atomic.Int64  // chunks not yet done
	wake   []chan struct{}
	done   chan struct{} // the last chunk is done
	ended  sync.WaitGroup
}

// workspace is the private memory of a thread.
type workspace struct {
	thread int
	a      []float32  // one tile's rows of A, kBlock deep
	row    []float32  // one row of gathered image windows
	off    [maxMR]int // where the tile's rows of C begin
}

func newPool(threads int, t tile) *pool {
	p := &pool{done: make(chan struct{}, 1)}
	for i := range threads {
		p.spaces = append(p.spaces, &workspace{thread: i, a: aligned(t.mr * rowStride), row: aligned(panelBlock(t) * t.nr)})
	}
	for _, ws := range p.spaces[1:] {
		wake := make(chan struct{}, 1)
		p.wake = append(p.wake, wake)
		p.ended.Go(func() {
			for range wake {
				p.help(ws)
			}
		})
	}
	return p
}

func (p *pool) threads() int { return len(p.spaces) }

// do runs f for chunks 0 … chunks-1, at most maxChunks, and waits. If alone,
// all of them run on the caller: waking others would take longer.
func (p *pool) do(alone bool, chunks int, f func(chunk int, ws *workspace)) {
	if alone || chunks == 1 || p.threads() == 1 {
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
	maxChunks = 1<<16 - 1
	// spins bounds the wait for others' last chunks before sleeping: some
	// microseconds, less than it takes to be woken.
	spins = 1 << 13
)

// help runs chunks until none is left.
func (p *pool) help(ws *workspace) {
	for {
		chunk, ok := p.claim()
		if !ok {
			return
		}
		p.job(chunk, ws) // stays what it is until this chunk is done
		if p.left.Add(-1) == 0 {
			p.done <- struct{}{}
		}
	}
}

// claim takes the next chunk of the current job. The state is one word, the
// job's number (32 bits), its chunks (16) and those claimed (16), so that a
// late worker can never claim a chunk of a job that is over.
func (p *pool) claim() (chunk int, ok bool) {
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

// close ends the workers. No job is running.
func (p *pool) close() {
	for _, w := range p.wake {
		close(w)
	}
	p.ended.Wait()
}

// part is the i-th of parts nearly equal ranges of 0 … n.
func part(n, i, parts int) (lo, hi int) { return n * i / parts, n * (i + 1) / parts }

// aligned is n zeros at a 64-byte boundary.
func aligned(n int) []float32 {
	all := make([]float32, n+16)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all)))%64) / 4
	return all[skip : skip+n : skip+n]
}
