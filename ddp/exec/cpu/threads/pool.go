package threads

// Pool is a team whose threads each have a workspace of their own.
type Pool[W any] struct {
	team   *Team
	spaces []*W
	job    func(chunk int, ws *W)
	call   func(chunk, thread int) // bound once
}

// New makes the workspaces of a team; space makes that of one thread.
func New[W any](team *Team, space func(thread int) *W) *Pool[W] {
	p := &Pool[W]{team: team}
	for i := range team.Size() {
		p.spaces = append(p.spaces, space(i))
	}
	p.call = func(chunk, thread int) { p.job(chunk, p.spaces[thread]) }
	return p
}

// Threads is the number of threads.
func (p *Pool[W]) Threads() int { return len(p.spaces) }

// Do runs job for chunks 0 … chunks-1 and waits. If alone,
// all of them run on the caller: waking others would take longer.
func (p *Pool[W]) Do(alone bool, chunks int, job func(chunk int, ws *W)) {
	if alone {
		for i := range chunks {
			job(i, p.spaces[0])
		}
		return
	}
	p.job = job
	p.team.Do(chunks, p.call)
	p.job = nil
}

// Each calls f with the workspace of every thread. No job is running.
func (p *Pool[W]) Each(f func(ws *W)) {
	for _, ws := range p.spaces {
		f(ws)
	}
}
