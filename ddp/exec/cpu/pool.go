package cpu

import "sync"

// job is work that can be cut into n parts, the same way each time.
type job interface{ part(w, n int) }

// pool runs jobs on a fixed number of threads: the caller and its workers.
type pool struct {
	n     int
	grain int // work below which a job is not worth sharing
	jobs  []chan job
	left  sync.WaitGroup // parts of the current job
	live  sync.WaitGroup // workers
}

func newPool(threads, grain int) *pool {
	p := &pool{n: threads, grain: grain}
	for w := 1; w < threads; w++ {
		ch := make(chan job)
		p.jobs = append(p.jobs, ch)
		p.live.Go(func() {
			for j := range ch {
				j.part(w, threads)
				p.left.Done()
			}
		})
	}
	return p
}

// grain is the number of elementary operations below which a job is not worth
// sharing: about ten microseconds.
const grain = 1 << 15

// run does all parts of j, alone if the work is small, and returns how many
// threads shared it.
func (p *pool) run(j job, work int) int {
	if p.n == 1 || work < p.grain {
		j.part(0, 1)
		return 1
	}
	p.left.Add(len(p.jobs))
	for _, ch := range p.jobs {
		ch <- j
	}
	j.part(0, p.n)
	p.left.Wait()
	return p.n
}

func (p *pool) close() {
	for _, ch := range p.jobs {
		close(ch)
	}
	p.live.Wait()
}
