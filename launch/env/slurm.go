package env

import (
	"fmt"
	"strconv"
	"strings"
)

// slurm reads a task of a SLURM step: one task per rank. Only step variables
// count; SLURM_NTASKS describes the whole job and is also set in a batch
// script or an salloc shell, where this process is not one of the tasks.
func (v *vars) slurm() (Worker, error) {
	if !v.inSlurmStep() {
		return v.slurmOutsideStep()
	}
	w := v.common(SourceSLURM)
	w.Rank = v.number("SLURM_PROCID", 0, maxCount)
	w.Size = v.number("SLURM_STEP_NUM_TASKS", 1, maxCount)
	w.LocalSize = 1
	if w.Size > 1 {
		v.slurmPlace(&w)
	}
	v.agree("SLURM_PROCID", w.Rank, "PMIX_RANK")
	return w, v.checked(w)
}

// InBatchJob says that a process belongs to a job of SLURM's, which ends it by itself: it
// sends SIGTERM, more than once when it takes a job's nodes away (it does, and srun, which
// hears of it, too), and then SIGKILL.
func InBatchJob(environ []string) bool { return newVars(environ).has("SLURM_JOB_ID") }

// interactiveStep is the number of the step in which salloc runs its shell on the first node,
// where a cluster is set up so (use_interactive_step).
const interactiveStep = "4294967290"

// inSlurmStep says that this process is a task that srun has started. The shell of salloc
// may be one, too, which stands for no rank: what it starts is outside of any step.
func (v *vars) inSlurmStep() bool {
	return v.has("SLURM_STEP_NUM_TASKS") && v.m["SLURM_STEP_ID"] != interactiveStep
}

// slurmStep reads the Step of a task of SLURM's.
func (v *vars) slurmStep(environ []string) (Step, error) {
	w := Worker{
		Source: SourceSLURM, Rank: v.number("SLURM_PROCID", 0, maxCount), Size: v.number("SLURM_STEP_NUM_TASKS", 1, maxCount), LocalSize: 1,
	}
	s := Step{
		Source: SourceSLURM, ID: "slurm-" + v.m["SLURM_JOB_ID"] + "." + v.m["SLURM_STEP_ID"], Task: w.Rank, Tasks: w.Size,
		Locals: 1, Nodes: 1, Host: v.m["SLURMD_NODENAME"], Store: v.has("PMI_FD"),
	}
	if w.Size > 1 {
		v.slurmPlace(&w)
		s.Node, s.Local, s.Locals = w.Node, w.LocalRank, w.LocalSize
		s.Nodes = v.number("SLURM_STEP_NUM_NODES", 1, maxCount)
		s.perNode, _ = expandTasks(v.m["SLURM_STEP_TASKS_PER_NODE"]) // slurmPlace has told its mistakes
	}
	if err := v.checked(w); err != nil {
		return s, err
	}
	hosts, err := StepHosts(environ)
	if err != nil {
		return s, err
	}
	if s.Hosts = hosts; len(hosts) > 0 {
		s.Head = hosts[0]
	}
	if s.Nodes > 1 && v.m["SLURM_DISTRIBUTION"] == "arbitrary" { // task 0 is anywhere
		s.Head = ""
		if s.Store && s.Task == 0 { // who tells the others
			s.Head = s.Host
		}
	}
	if s.Tasks > 1 && (len(s.perNode) != s.Nodes || len(hosts) != s.Nodes) {
		return s, fmt.Errorf("SLURM_STEP_NUM_NODES=%d contradicts SLURM_STEP_NODELIST, which has %d hosts, or SLURM_STEP_TASKS_PER_NODE, which has %d", s.Nodes, len(hosts), len(s.perNode))
	}
	return s, nil
}

// slurmPlace reads the place of a task of a SLURM step on its node.
func (v *vars) slurmPlace(w *Worker) {
	w.LocalRank = v.number("SLURM_LOCALID", 0, maxCount)
	w.Node = v.number("SLURM_NODEID", 0, maxCount)
	w.LocalSize = v.slurmLocalSize(*w)
}

// slurmOutsideStep handles a process of a batch script or an salloc shell. It
// is a world of one only if the job has one task.
func (v *vars) slurmOutsideStep() (Worker, error) {
	w := Worker{Source: SourceNone, Size: 1, LocalSize: 1, ControlFD: noDescriptor, ProgressFD: noDescriptor}
	if !v.has("SLURM_NTASKS") {
		return w, v.err
	}
	if n := v.number("SLURM_NTASKS", 1, maxCount); n > 1 && v.err == nil {
		return Worker{}, fmt.Errorf("SLURM_NTASKS=%d but this process is not in a step (SLURM_STEP_NUM_TASKS is not set): start it with srun or ddplaunch, or unset SLURM_NTASKS to run alone", n)
	}
	return w, v.err
}

// slurmLocalSize is this node's entry in SLURM_STEP_TASKS_PER_NODE.
func (v *vars) slurmLocalSize(w Worker) int {
	s := v.text("SLURM_STEP_TASKS_PER_NODE")
	if v.err != nil {
		return 1
	}
	counts, err := expandTasks(s)
	if err != nil {
		v.fail("SLURM_STEP_TASKS_PER_NODE=%q: %v", s, err)
		return 1
	}
	if w.Node >= len(counts) {
		v.fail("SLURM_NODEID=%d but SLURM_STEP_TASKS_PER_NODE=%q lists %d nodes", w.Node, s, len(counts))
		return 1
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != w.Size {
		v.fail("SLURM_STEP_NUM_TASKS=%d contradicts SLURM_STEP_TASKS_PER_NODE=%q, which adds up to %d", w.Size, s, total)
	}
	return counts[w.Node]
}

// expandTasks turns "2(x3),1" into 2, 2, 2, 1.
func expandTasks(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		count, times := part, "1"
		if before, after, ok := strings.Cut(part, "(x"); ok {
			count, times = before, strings.TrimSuffix(after, ")")
			if times == after {
				return nil, fmt.Errorf("%q has no closing parenthesis", part)
			}
		}
		n, err1 := strconv.Atoi(count)
		x, err2 := strconv.Atoi(times)
		if err1 != nil || err2 != nil || n < 1 || x < 1 || x > maxCount {
			return nil, fmt.Errorf("%q is not of the form 2 or 2(x3)", part)
		}
		if len(out)+x > maxCount {
			return nil, fmt.Errorf("more than %d nodes", maxCount)
		}
		for range x {
			out = append(out, n)
		}
	}
	return out, nil
}
