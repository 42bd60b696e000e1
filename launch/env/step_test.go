package env

import (
	"fmt"
	"strings"
	"testing"
)

// The environment of task 3 of "srun -N4 -n5", as Slurm 22.05 makes it.
const step = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NUM_NODES=4 SLURM_PROCID=3 SLURM_NODEID=2 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=2,1(x3) SLURM_STEP_NODELIST=n[0-3] SLURM_JOB_NODELIST=n[0-7] SLURMD_NODENAME=n2"

// Tasks of mpirun (Open MPI 4.1) and of mpiexec (MPICH 4.0), and what may surround them.
const (
	ompi  = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=3 PMIX_NAMESPACE=1697316865"
	hydra = "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS="
	iface = "MPIR_CVAR_CH3_INTERFACE_HOSTNAME="
	named = iface + "ib0-n1"
	batch = "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_PROCID=0 SLURM_NTASKS=2"
	shell = batch + " SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NODELIST=n0 SLURMD_NODENAME=n0" // of salloc, as a step of its own
)

func TestFindStep(t *testing.T) {
	for environ, want := range map[string]string{
		step: "srun: slurm-7.0 task 3/5 node 2/4 local 0/1 at n2 of [n0 n1 n2 n3] [n0 n0 n1 n2 n3], first n0, store false",
		step + " PMI_RANK=3 PMI_SIZE=5 PMI_FD=9 PMI_JOBID=7.0 MASTER_ADDR=other":                                         "srun: slurm-7.0 task 3/5 node 2/4 local 0/1 at n2 of [n0 n1 n2 n3] [n0 n0 n1 n2 n3], first n0, store true",
		"SLURM_JOB_ID=8 SLURM_STEP_ID=2 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_NODELIST=n1 SLURMD_NODENAME=n1": "srun: slurm-8.2 task 0/1 node 0/1 local 0/1 at n1 of [n1] [n1], first n1, store false",
		step + " SLURM_DISTRIBUTION=cyclic":    "srun: slurm-7.0 task 3/5 node 2/4 local 0/1 at n2 of [n0 n1 n2 n3] [n0 n0 n1 n2 n3], first n0, store false",
		step + " SLURM_DISTRIBUTION=arbitrary": "srun: slurm-7.0 task 3/5 node 2/4 local 0/1 at n2 of [n0 n1 n2 n3] [n0 n0 n1 n2 n3], first , store false",
		strings.Replace(step, "PROCID=3", "PROCID=0", 1) + " SLURM_DISTRIBUTION=arbitrary PMI_RANK=0 PMI_SIZE=5 PMI_FD=9":  "srun: slurm-7.0 task 0/5 node 2/4 local 0/1 at n2 of [n0 n1 n2 n3] [n0 n0 n1 n2 n3], first n2, store true",
		"SLURM_JOB_ID=8 SLURM_STEP_ID=2 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0":                                             "srun: slurm-8.2 task 0/1 node 0/1 local 0/1 at  of [] [], first , store false",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=4":                                                                             "mpirun (Open MPI): mpirun-1697316865 task 3/4 node 0/1 local 1/4 at  of [] [], first , store false",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=2":                                                                             "mpirun (Open MPI): mpirun-1697316865 task 3/4 node 0/0 local 1/2 at  of [] [], first , store false",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=node01":                                                          "mpirun (Open MPI): mpirun-1697316865 task 3/4 node 0/0 local 1/2 at  of [] [], first node01, store false",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=fd00::1 MASTER_PORT=29500":                                       "mpirun (Open MPI): mpirun-1697316865 task 3/4 node 0/0 local 1/2 at  of [] [], first [fd00::1]:29500, store false",
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 " + batch: "mpirun (Open MPI): mpirun task 0/1 node 0/1 local 0/1 at  of [] [], first , store false",
		hydra + "1":          "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at  of [] [], first , store false",
		hydra + "1 PMI_FD=6": "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at  of [] [], first , store true",
		hydra + "1 PMI_FD=6 PMI_JOBID=j " + named:                                          "mpiexec (PMI): mpiexec-j task 0/4 node 0/0 local 0/1 at ib0-n1 of [] [], first ib0-n1, store true",
		hydra + "1 PMI_FD=6 MASTER_ADDR=other":                                             "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at  of [] [], first , store true",
		hydra + "1 MASTER_ADDR=node01 " + named:                                            "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at ib0-n1 of [] [], first node01, store false",
		hydra + "4 PMI_FD=6 " + iface + "127.0.0.1":                                        "mpiexec (PMI): mpiexec task 0/4 node 0/1 local 0/4 at  of [] [], first , store true",
		hydra + "1 PMI_FD=6 " + iface + "localhost":                                        "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at  of [] [], first , store true",
		hydra + "1 PMI_FD=6 " + step:                                                       "mpiexec (PMI): mpiexec task 0/4 node 0/0 local 0/1 at  of [] [], first , store true",
		"PMI_RANK=0 PMI_SIZE=1 PMI_FD=6":                                                   "mpiexec (PMI): mpiexec task 0/1 node 0/1 local 0/1 at  of [] [], first , store true",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=2 " + step + " PMI_RANK=3 PMI_SIZE=5 PMI_FD=9": "mpirun (Open MPI): mpirun-1697316865 task 3/4 node 0/0 local 1/2 at  of [] [], first , store false",
	} {
		s, ok, err := FindStep(strings.Fields(environ))
		got := fmt.Sprintf("%s: %s task %d/%d node %d/%d local %d/%d at %s of %v %v, first %s, store %v", s.Source, s.ID, s.Task, s.Tasks, s.Node, s.Nodes, s.Local, s.Locals, s.Host, s.Hosts, s.TaskHosts(), s.Head, s.Store)
		if !ok || err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v, %v\nwant %s", environ, got, ok, err, want)
		}
	}
	for _, none := range []string{"", batch, shell, "PMIX_RANK=0"} {
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

// What mpirun and mpiexec have set by halves is an error that names the variable.
func TestFindStepOfMPI(t *testing.T) {
	for environ, want := range map[string]string{
		ompi:                                   "OMPI_COMM_WORLD_LOCAL_SIZE is not set",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=1": "local rank 1 is not below",
		ompi + " OMPI_COMM_WORLD_LOCAL_SIZE=4 MASTER_PORT=http":       `MASTER_PORT="http" is not a whole number`,
		"PMI_RANK=1 PMI_SIZE=2 PMI_FD=6":                              "MPI_LOCALRANKID is not set although PMI_RANK is",
		"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=two": `MPI_LOCALNRANKS="two" is not a whole number`,
		"PMI_RANK=2 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2":   "rank 2 is not below the number of ranks, 2",
	} {
		if s, ok, err := FindStep(strings.Fields(environ)); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v, want %s", environ, s, err, want)
		}
	}
}

func TestBatchNodes(t *testing.T) {
	for environ, want := range map[string]int{
		"": 0, step + " SLURM_JOB_NUM_NODES=4": 0, "SLURM_JOB_NUM_NODES=2": 2, shell: 2, "SLURM_JOB_NUM_NODES=x": 0,
	} {
		if got := BatchNodes(strings.Fields(environ)); got != want {
			t.Errorf("%q: got %d, want %d", environ, got, want)
		}
	}
}

// Several tasks share a node if this one does not have its node alone, or if there are fewer
// nodes than tasks.
func TestShared(t *testing.T) {
	for s, want := range map[*Step]bool{
		{Tasks: 4, Nodes: 4, Locals: 1}: false, {Tasks: 5, Nodes: 4, Locals: 1}: true, {Tasks: 5, Nodes: 4, Locals: 2}: true,
		{Tasks: 4, Locals: 1}: false, {Tasks: 4, Locals: 2}: true, {Tasks: 1, Nodes: 1, Locals: 1}: false,
	} {
		if got := s.Shared(); got != want {
			t.Errorf("%+v: got %v", *s, got)
		}
	}
}
