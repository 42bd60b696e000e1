package env

import "slices"

// Step is the place of a process among the tasks that somebody has started together:
// srun a step of a job, mpirun or mpiexec a job of MPI.
type Step struct {
	Source        string // who: SourceSLURM, SourceOMPI or SourcePMI, which is Hydra here
	ID            string // job and step, "slurm-12.0": no other step has it that runs, if who started it has names
	Task, Tasks   int    // number in the step, from 0; how many there are
	Node, Nodes   int    // the same of nodes; both 0 if nobody tells
	Local, Locals int    // the same of tasks on this node
	Host          string // what who started it calls this node; "" if nothing
	Hosts         []string
	Head          string // host, or host:port, of the node of task 0; "" if nobody tells
	Store         bool   // the tasks share a store of keys and values, see package pmi
	perNode       []int  // tasks of each node; nil if nobody tells
}

// FindStep reads the Step that environ, in the form of os.Environ, describes; false
// outside of any. A batch script and an salloc shell are in none, though they have
// variables of SLURM.
func FindStep(environ []string) (s Step, in bool, err error) {
	v := newVars(environ)
	switch {
	case v.byOpenMPI():
		s, err = v.openMPIStep()
	case v.byHydra():
		s, err = v.hydraStep()
	case v.inSlurmStep():
		s, err = v.slurmStep(environ)
	default:
		return s, false, nil
	}
	if err != nil {
		return Step{}, false, err
	}
	return s, true, nil
}

// Shared reports whether several tasks of the step are on one node, as far as this one
// can tell.
func (s Step) Shared() bool { return s.Locals > 1 || s.Nodes > 0 && s.Nodes < s.Tasks }

// TaskHosts are the hosts of all tasks, in the order of nodes; nil if nobody tells.
func (s Step) TaskHosts() []string {
	if s.Tasks == 1 {
		return slices.Clone(s.Hosts)
	}
	var all []string
	for i, n := range s.perNode {
		all = append(all, slices.Repeat(s.Hosts[i:i+1], n)...)
	}
	return all
}

// BatchNodes is how many nodes the SLURM job of a process has that is in no step:
// of a batch script or an salloc shell. It is 0 elsewhere.
func BatchNodes(environ []string) int {
	v := newVars(environ)
	if v.inSlurmStep() || !v.has("SLURM_JOB_NUM_NODES") {
		return 0
	}
	n := v.number("SLURM_JOB_NUM_NODES", 1, maxCount)
	if v.err != nil {
		return 0
	}
	return n
}
