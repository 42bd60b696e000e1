package launcher

import (
	"os"
	"time"

	"ebtrain/launch/env"
)

// Place makes this launcher the one of a task of a step, all of whose tasks are
// launchers of the job. What o tells of the address and the name of the job stays; of
// the address it may be the host alone. Where who started them shows what all tasks put
// out, node 0 does, equal lines once; where each task has a file, each keeps its own.
func (o *Options) Place(s env.Step) {
	o.Gather = s.Tasks > 1 && !isFile(os.Stdout)
	o.Step, o.NodeRank, o.Host, o.Hosts = s, s.Task, s.Host, s.TaskHosts()
	if o.RunID == "" {
		o.RunID = s.ID
	}
	switch {
	case o.Endpoint != "":
	case s.Nodes == 1:
		o.Endpoint = "127.0.0.1" // nobody else is to reach it
	default:
		o.Endpoint = s.Head
	}
}

// lag is how long a task of s waits before it ends with another code than 0. mpirun kills
// all that are left a tenth of a second after the first has ended so: that is to be
// the one of node 0, which shows what the others have said, or what is wrong with all.
func lag(s env.Step) time.Duration {
	if s.Source == env.SourceOMPI && s.Task > 0 {
		return 2 * time.Second
	}
	return 0
}

// isFile reports whether f is a file, and no pipe, socket or terminal.
func isFile(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular()
}
