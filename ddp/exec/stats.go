package exec

import "time"

// Stats describe a program and its runs.
type Stats struct {
	Nodes     int   // live nodes of the graph
	Steps     int   // kernels launched per run, after fusion
	PeakBytes int64 // memory of intermediate values, planned
	VarBytes  int64 // memory of the variables it reads or assigns

	Runs     int64
	RunTime  time.Duration // whole runs
	CommWait time.Duration // blocked on collectives: exposed communication

	// Ops is the time by kind of op, filled if Options.Profile.
	Ops map[string]OpStats
}

// OpStats is the time spent in one kind of op, over all runs.
type OpStats struct {
	Calls int64
	Time  time.Duration
	Flops int64 // multiply-adds count as two; 0 where it makes no sense
}

// Add counts a call.
func (o *OpStats) Add(took time.Duration, flops int64) {
	o.Calls++
	o.Time += took
	o.Flops += flops
}

// ByKind sums what steps have taken by their kinds.
func ByKind(steps []OpStats, kind func(step int) string) map[string]OpStats {
	sums := map[string]OpStats{}
	for i, o := range steps {
		sum := sums[kind(i)]
		sum.Calls += o.Calls
		sum.Time += o.Time
		sum.Flops += o.Flops
		sums[kind(i)] = sum
	}
	return sums
}
