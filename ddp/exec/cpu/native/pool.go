package native

import (
	"sync"
	"unsafe"
)

// pool is a fixed set of threads: the caller and its workers.
type pool struct {
	spaces []*workspace // one a thread
	work   []chan func(thread int, ws *workspace)
	done   sync.WaitGroup // workers busy in do
	ended  sync.WaitGroup // workers alive
}

// workspace is the private memory of a thread.
type workspace struct {
	a   []float32  // one tile's rows of A, kBlock deep
	row []float32  // one row of gathered image windows
	off [maxMR]int // where the tile's rows of C begin
}

func newPool(threads int, t tile) *pool {
	p := &pool{}
	for i := range threads {
		p.spaces = append(p.spaces, &workspace{a: aligned(t.mr * rowStride), row: aligned(panelBlock(t) * t.nr)})
		if i == 0 {
			continue
		}
		work := make(chan func(int, *workspace))
		p.work = append(p.work, work)
		p.ended.Go(func() {
			for f := range work {
				f(i, p.spaces[i])
				p.done.Done()
			}
		})
	}
	return p
}

func (p *pool) threads() int { return len(p.spaces) }

// do runs f once on every thread and waits. If alone, it runs f for every
// thread in turn on the caller: waking others would take longer.
func (p *pool) do(alone bool, f func(thread int, ws *workspace)) {
	if alone {
		for i, ws := range p.spaces {
			f(i, ws)
		}
		return
	}
	p.done.Add(len(p.work))
	for _, w := range p.work {
		w <- f
	}
	f(0, p.spaces[0])
	p.done.Wait()
}

func (p *pool) close() {
	for _, w := range p.work {
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
