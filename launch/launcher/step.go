package launcher

import (
	"os"

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

// isFile reports whether f is a file, and no pipe, socket or terminal.
func isFile(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular()
}
