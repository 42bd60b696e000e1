package env

import (
	"fmt"
	"strings"
	"testing"
)

// The environment of task 3 of "srun -N4 -n5", as Slurm 22.05 makes it.
const step = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NUM_NODES=4 SLURM_PROCID=3 SLURM_NODEID=2 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=2,1(x3) SLURM_STEP_NODELIST=n[0-3] SLURM_JOB_NODELIST=n[0-7] SLURMD_NODENAME=n2"

func TestFindStep(t *testing.T) {
	for environ, want := range map[string]string{
		step: "7.0 task 3/5 node 2/4 local 0/1 n2 [n0 n1 n2 n3] [n0 n0 n1 n2 n3]",
		"SLURM_JOB_ID=8 SLURM_STEP_ID=2 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_NODELIST=n1 SLURMD_NODENAME=n1": "8.2 task 0/1 node 0/1 local 0/1 n1 [n1] [n1]",
	} {
		s, ok, err := FindStep(strings.Fields(environ))
		got := fmt.Sprintf("%s task %d/%d node %d/%d local %d/%d %s %v %v", s.ID, s.Task, s.Tasks, s.Node, s.Nodes, s.Local, s.Locals, s.Host, s.Hosts, s.TaskHosts())
		if !ok || err != nil || got != want {
			t.Errorf("got %s, %v, %v\nwant %s", got, ok, err, want)
		}
	}
	for _, none := range []string{"", "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_PROCID=0 SLURM_NTASKS=2"} {
		if s, ok, err := FindStep(strings.Fields(none)); ok || err != nil {
			t.Errorf("%q: got %+v, %v", none, s, err)
		}
	}
	for old, changed := range map[string]string{
		"SLURM_STEP_NUM_NODES=4": "SLURM_STEP_NUM_NODES=3", "NODELIST=n[0-3]": "NODELIST=n[0-2]", "SLURM_PROCID=3": "SLURM_PROCID=5", "SLURM_NODEID=2": "", "[0-3]": "[0-",
	} {
		if s, ok, err := FindStep(strings.Fields(strings.Replace(step, old, changed, 1))); ok || err == nil || !strings.Contains(err.Error(), "SLURM_") && !strings.Contains(err.Error(), "srun") && !strings.Contains(err.Error(), "rank 5") {
			t.Errorf("%s: got %+v, %v", changed, s, err)
		}
	}
}

func TestBatchNodes(t *testing.T) {
	for environ, want := range map[string]int{
		"": 0, step + " SLURM_JOB_NUM_NODES=4": 0, "SLURM_JOB_NUM_NODES=2": 2, "SLURM_JOB_NUM_NODES=x": 0,
	} {
		if got := BatchNodes(strings.Fields(environ)); got != want {
			t.Errorf("%q: got %d, want %d", environ, got, want)
		}
	}
}
