package task

import (
	"fmt"
	"strings"
	"testing"
)

// Task 1 of "srun -N2 -n3", with and without --mpi=pmi2, and of "mpiexec -np 3" and
// "mpirun -np 3" on two hosts.
const (
	step  = "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=2 SLURM_PROCID=1 SLURM_NODEID=0 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2,1 SLURM_STEP_NODELIST=n[0-1] SLURMD_NODENAME=n0"
	pmi   = " PMI_RANK=1 PMI_SIZE=3 PMI_FD=7 PMI_JOBID=7.1"
	hydra = "PMI_RANK=1 PMI_SIZE=3 PMI_FD=6 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2"
	ompi  = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=77"
)

// A task of several leads a rank of its own: as many launchers as tasks, the place
// among the ranks of its node that of who started it.
func TestLeads(t *testing.T) {
	for environ, want := range map[string]string{
		step:       "slurm-7.1 of [n0 n0 n1] by n0, store false",
		step + pmi: "slurm-7.1 of [n0 n0 n1] by n0, store true",
		hydra:      "mpiexec of [] by , store true",
		ompi:       "mpirun-77 of [] by , store false",
		ompi + " MASTER_ADDR=node01 MASTER_PORT=4000": "mpirun-77 of [] by node01:4000, store false",
	} {
		o, leads, err := options("train", []string{"--steps", "3"}, strings.Fields(environ))
		if !leads || err != nil {
			t.Fatalf("%s: %v, %v", environ, leads, err)
		}
		if o.Nproc != 1 || o.Nodes != 3 || o.Least != 3 || o.NodeRank != 1 || o.Local != 1 || o.Locals != 2 || o.Name != "train" || strings.Join(o.Args, " ") != "--steps 3" {
			t.Errorf("%s: %+v", environ, o)
		}
		if got := fmt.Sprintf("%s of %v by %s, store %v", o.RunID, o.Hosts, o.Endpoint, o.Step.Store); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", environ, got, want)
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
		"rank under mpirun": ompi + rank + "EBTRAIN_CONTROL_FD=3 EBTRAIN_PROGRESS_FD=4 EBTRAIN_GROUP=g EBTRAIN_EPOCH=0 TORCHELASTIC_RESTART_COUNT=0",
		"rank by hand":      ompi + rank,
		"one of mpirun":     "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1",
		"one of mpiexec":    "PMI_RANK=0 PMI_SIZE=1 PMI_FD=6 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1",
		"half of mpiexec":   "PMI_RANK=1 PMI_SIZE=3",
		"contradiction":     step + " PMI_RANK=2 PMI_SIZE=3",
		"half":              "SLURM_STEP_NUM_TASKS=3",
	} {
		if o, leads, err := options("train", nil, strings.Fields(environ)); leads || err != nil {
			t.Errorf("%s: leads %+v, %v", name, o, err)
		}
	}
}
