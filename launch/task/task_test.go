package task

import (
	"strings"
	"testing"
)

// Task 1 of "srun -N2 -n3", with and without --mpi=pmi2.
const (
	step = "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=2 SLURM_PROCID=1 SLURM_NODEID=0 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2,1 SLURM_STEP_NODELIST=n[0-1] SLURMD_NODENAME=n0"
	pmi  = " PMI_RANK=1 PMI_SIZE=3 PMI_FD=7 PMI_JOBID=7.1"
)

// A task of several leads a rank of its own: as many launchers as tasks, the place
// among the ranks of its node Slurm's.
func TestLeads(t *testing.T) {
	for _, environ := range []string{step, step + pmi} {
		o, leads, err := options("train", []string{"--steps", "3"}, strings.Fields(environ))
		if !leads || err != nil {
			t.Fatalf("%s: %v, %v", environ, leads, err)
		}
		if o.Nproc != 1 || o.Nodes != 3 || o.Least != 3 || o.NodeRank != 1 || o.Local != 1 || o.Locals != 2 || o.Name != "train" || o.RunID != "slurm-7.1" || strings.Join(o.Args, " ") != "--steps 3" || strings.Join(o.Hosts, " ") != "n0 n0 n1" {
			t.Errorf("%s: %+v", environ, o)
		}
	}
}

// Ranks, tasks that are alone, ranks of other launchers and wrong environments are
// left to the program.
func TestDoesNotLead(t *testing.T) {
	const rank = " RANK=1 WORLD_SIZE=3 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 "
	for name, environ := range map[string]string{
		"alone":             "",
		"rank of ddplaunch": step + rank + "EBTRAIN_CONTROL_FD=3 EBTRAIN_PROGRESS_FD=4 EBTRAIN_GROUP=g EBTRAIN_EPOCH=0 TORCHELASTIC_RESTART_COUNT=0",
		"rank of torchrun":  step + rank + "TORCHELASTIC_RUN_ID=x",
		"one task":          "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_NODELIST=n0",
		"batch script":      "SLURM_JOB_ID=7 SLURM_NTASKS=3 SLURM_PROCID=0",
		"Hydra":             "PMI_RANK=1 PMI_SIZE=3 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
		"contradiction":     step + " PMI_RANK=2 PMI_SIZE=3",
		"half":              "SLURM_STEP_NUM_TASKS=3",
	} {
		if o, leads, err := options("train", nil, strings.Fields(environ)); leads || err != nil {
			t.Errorf("%s: leads %+v, %v", name, o, err)
		}
	}
}
