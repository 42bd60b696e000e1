package env

import (
	"net"
	"net/netip"
	"strconv"
)

// openMPI reads what mpirun of Open MPI sets.
func (v *vars) openMPI() (Worker, error) {
	w := v.common(SourceOMPI)
	w.Rank = v.number("OMPI_COMM_WORLD_RANK", 0, maxCount)
	w.Size = v.number("OMPI_COMM_WORLD_SIZE", 1, maxCount)
	w.LocalRank = v.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, maxCount)
	w.LocalSize = v.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, maxCount)
	v.agree("OMPI_COMM_WORLD_RANK", w.Rank, "PMIX_RANK")
	return w, v.checked(w)
}

// pmi reads what Hydra (MPICH, Intel MPI) and Slurm's PMI-2 set. Hydra tells the
// place on the node in MPI_ variables, which may be absent in a world of one
// only; Slurm (srun --mpi=pmi2) tells it in those of the step.
func (v *vars) pmi() (Worker, error) {
	w := v.common(SourcePMI)
	w.Rank = v.number("PMI_RANK", 0, maxCount)
	w.Size = v.number("PMI_SIZE", 1, maxCount)
	w.LocalSize = 1
	switch {
	case v.hasAny("MPI_LOCALRANKID", "MPI_LOCALNRANKS"), w.Size > 1 && v.byHydra():
		w.LocalRank = v.number("MPI_LOCALRANKID", 0, maxCount)
		w.LocalSize = v.number("MPI_LOCALNRANKS", 1, maxCount)
	case w.Size > 1:
		v.slurmPlace(&w)
		v.agree("PMI_RANK", w.Rank, "SLURM_PROCID")
	}
	v.agree("PMI_RANK", w.Rank, "PMIX_RANK")
	return w, v.checked(w)
}

// byOpenMPI and byHydra say whose task this is, whatever else is around them: both
// run in Slurm's jobs, too, and start what they need there as steps.
func (v *vars) byOpenMPI() bool { return v.hasAny("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") }

func (v *vars) byHydra() bool {
	return v.hasAny("PMI_RANK", "PMI_SIZE") && (v.hasAny("MPI_LOCALRANKID", "MPI_LOCALNRANKS") || !v.has("SLURM_STEP_TASKS_PER_NODE"))
}

// openMPIStep is the Step of a task of Open MPI, which has no store that could be
// used without its own library.
func (v *vars) openMPIStep() (Step, error) {
	w, err := v.openMPI()
	s := mpiStep(w, stepID("mpirun", v.m["PMIX_NAMESPACE"]))
	s.Head = master(w)
	return s, err
}

// hydraStep is the Step of a task of Hydra, which tells each what its node is called
// in the list of hosts, or the address of the interface that is to be used.
func (v *vars) hydraStep() (Step, error) {
	w, err := v.pmi()
	s := mpiStep(w, stepID("mpiexec", v.m["PMI_JOBID"]))
	if name := v.m["MPIR_CVAR_CH3_INTERFACE_HOSTNAME"]; !onlyHere(name) {
		s.Host = name
	}
	s.Store = v.has("PMI_FD")
	switch {
	case !s.Store:
		s.Head = master(w)
	case s.Task == 0: // who tells the others
		s.Head = s.Host
	}
	return s, err
}

// mpiStep is what both say. Neither tells the number of nodes, which is known only if
// this is the only one.
func mpiStep(w Worker, id string) Step {
	s := Step{Source: w.Source, ID: id, Task: w.Rank, Tasks: w.Size, Local: w.LocalRank, Locals: w.LocalSize}
	if s.Locals == s.Tasks {
		s.Nodes = 1
	}
	return s
}

func stepID(by, id string) string {
	if id == "" {
		return by
	}
	return by + "-" + id
}

// master is where MASTER_ADDR and MASTER_PORT say that rank 0 is, "" if they do not.
func master(w Worker) string {
	if w.MasterAddr == "" || w.MasterPort == 0 {
		return w.MasterAddr
	}
	return net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort))
}

// onlyHere says that host means something else on every machine.
func onlyHere(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
