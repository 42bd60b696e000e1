package cpu

import "ebtrain/ddp/exec/cpu/threads"

// job is work that can be cut into n parts, the same way each time. Part i is
// done by one of the threads; worker is its number.
type job interface{ part(worker, i, n int) }

// pool runs jobs on a team of threads. What a part computes does not depend on
// who computes it.
type pool struct {
	team    *threads.Team
	threads int
	parts   int // of a shared job
	grain   int // work below which a job is not worth sharing

	job  job
	call func(part, worker int) // bound once
}

// grain is the number of elementary operations below which a job is not worth
// sharing: about ten microseconds.
const grain = 1 << 15

func newPool(team *threads.Team, grain int) *pool {
	p := &pool{team: team, threads: team.Size(), parts: 1, grain: grain}
	if p.threads > 1 {
		p.parts = 4 * p.threads
	}
	p.call = func(part, worker int) { p.job.part(worker, part, p.parts) }
	return p
}

// run does all parts of j, alone if the work is small, and returns how many
// parts there were.
func (p *pool) run(j job, work int) int {
	if p.parts == 1 || work < p.grain {
		j.part(0, 0, 1)
		return 1
	}
	p.job = j
	p.team.Do(p.parts, p.call)
	return p.parts
}
