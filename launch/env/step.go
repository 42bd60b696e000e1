package env

import (
	"fmt"
	"slices"
)

// Step is the place of a process in the SLURM step whose task it is.
type Step struct {
	ID            string // job and step, "12.0": no other step has it, but the same job when it is requeued
	Task, Tasks   int    // number in the step, from 0; how many there are
	Node, Nodes   int    // the same of nodes
	Local, Locals int    // the same of tasks on this node
	Host          string // SLURM's name of this node
	Hosts         []string
	perNode       []int // tasks of each node
}

// FindStep reads the Step that environ, in the form of os.Environ, describes; false
// outside of any. A batch script and an salloc shell are in none, though they have
// variables of SLURM.
func FindStep(environ []string) (Step, bool, error) {
	v := newVars(environ)
	if !v.has("SLURM_STEP_NUM_TASKS") {
		return Step{}, false, nil
	}
	w := Worker{
		Source: SourceSLURM, Rank: v.number("SLURM_PROCID", 0, maxCount), Size: v.number("SLURM_STEP_NUM_TASKS", 1, maxCount), LocalSize: 1,
	}
	s := Step{ID: v.m["SLURM_JOB_ID"] + "." + v.m["SLURM_STEP_ID"], Task: w.Rank, Tasks: w.Size, Locals: 1, Nodes: 1, Host: v.m["SLURMD_NODENAME"]}
	if w.Size > 1 {
		v.slurmPlace(&w)
		s.Node, s.Local, s.Locals = w.Node, w.LocalRank, w.LocalSize
		s.Nodes = v.number("SLURM_STEP_NUM_NODES", 1, maxCount)
		s.perNode, _ = expandTasks(v.m["SLURM_STEP_TASKS_PER_NODE"]) // slurmPlace has told its mistakes
	}
	if err := v.checked(w); err != nil {
		return Step{}, false, err
	}
	hosts, err := StepHosts(environ)
	if err != nil {
		return Step{}, false, err
	}
	s.Hosts = hosts
	if s.Tasks > 1 && (len(s.perNode) != s.Nodes || len(hosts) != s.Nodes) {
		return Step{}, false, fmt.Errorf("SLURM_STEP_NUM_NODES=%d contradicts SLURM_STEP_NODELIST, which has %d hosts, or SLURM_STEP_TASKS_PER_NODE, which has %d", s.Nodes, len(hosts), len(s.perNode))
	}
	return s, true, nil
}

// TaskHosts are the hosts of all tasks, in SLURM's order of nodes.
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
	if v.has("SLURM_STEP_NUM_TASKS") || !v.has("SLURM_JOB_NUM_NODES") {
		return 0
	}
	n := v.number("SLURM_JOB_NUM_NODES", 1, maxCount)
	if v.err != nil {
		return 0
	}
	return n
}
