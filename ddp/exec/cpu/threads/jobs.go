package threads

// Job is work that can be cut into n parts, the same way each time. Part i is
// done by one of the threads; worker is its number.
type Job interface{ Part(worker, i, n int) }

// Jobs runs jobs on a team. What a part computes does not depend on who computes
// it, and how a job is cut depends on its size and the number of threads alone.
type Jobs struct {
	Threads int
	Parts   int // of a shared job

	team  *Team
	grain int
	job   Job
	call  func(part, worker int) // bound once
}

// Grain is the number of elementary operations below which a job is not worth
// sharing: about ten microseconds.
const Grain = 1 << 15

// NewJobs shares jobs of at least grain operations among a team.
func NewJobs(team *Team, grain int) *Jobs {
	j := &Jobs{Threads: team.Size(), Parts: 1, team: team, grain: grain}
	if j.Threads > 1 {
		j.Parts = 4 * j.Threads
	}
	j.call = func(part, worker int) { j.job.Part(worker, part, j.Parts) }
	return j
}

// Run does all parts of a job, on the caller alone if it is less than the grain,
// and returns how many parts there were.
func (j *Jobs) Run(job Job, operations int) int {
	if j.Parts == 1 || operations < j.grain {
		job.Part(0, 0, 1)
		return 1
	}
	j.job = job
	j.team.Do(j.Parts, j.call)
	j.job = nil // its memory is not the team's to keep
	return j.Parts
}
