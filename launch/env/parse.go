package env

import (
	"fmt"
	"strings"
)

// Parse reads a Worker from an environment in the form of os.Environ.
//
// The launchers are tried in this order, and the first that has left its mark
// decides: ddplaunch (EBTRAIN_CONTROL_FD), RANK and WORLD_SIZE, Open MPI, PMI,
// SLURM. None of them is a world of one. A half-set or contradictory
// environment is an error of one sentence that names the variable.
func Parse(environ []string) (Worker, error) {
	v := newVars(environ)
	switch {
	case v.has("EBTRAIN_CONTROL_FD"):
		return v.ddplaunch()
	case v.hasAny("RANK", "WORLD_SIZE"):
		return v.torchrun()
	case v.hasAny("LOCAL_RANK", "LOCAL_WORLD_SIZE"):
		return Worker{}, fmt.Errorf("%s is set but RANK is not: set RANK and WORLD_SIZE too, or unset it to run alone", v.first("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
	case v.byOpenMPI():
		return v.openMPI()
	case v.hasAny("PMI_RANK", "PMI_SIZE"):
		return v.pmi()
	case v.hasAny("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"):
		return v.slurm()
	case v.hasAny("PMIX_RANK", "MPI_LOCALRANKID"):
		return Worker{}, fmt.Errorf("%s is set but no variable tells the number of ranks: start with ddplaunch, or unset it to run alone", v.first("PMIX_RANK", "MPI_LOCALRANKID"))
	}
	return Worker{Source: SourceNone, Size: 1, LocalSize: 1, ControlFD: noDescriptor, ProgressFD: noDescriptor}, nil
}

// ddplaunch reads what Worker.Environ wrote. Other launchers' variables are
// ignored: ddplaunch may itself run under srun or mpirun.
func (v *vars) ddplaunch() (Worker, error) {
	w := v.common(SourceEbt)
	v.torchRanks(&w)
	w.ControlFD = v.number("EBTRAIN_CONTROL_FD", 3, maxFD)
	w.ProgressFD = v.number("EBTRAIN_PROGRESS_FD", 3, maxFD)
	w.Group = v.text(GroupVar)
	if epoch := v.number("EBTRAIN_EPOCH", 0, maxCount); v.err == nil && epoch != w.Restart {
		v.fail("EBTRAIN_EPOCH=%d contradicts TORCHELASTIC_RESTART_COUNT=%d", epoch, w.Restart)
	}
	switch p := v.m["EBTRAIN_PROGRESS"]; p {
	case "tty":
		w.Terminal = true
	case "plain", "":
	default:
		v.fail("EBTRAIN_PROGRESS=%q: want tty or plain", p)
	}
	return w, v.checked(w)
}

// torchrun reads RANK and its companions, from torchrun or from a script. If
// no launcher of theirs vouches for them (TORCHELASTIC_RUN_ID), they must not
// contradict the ranks given by mpirun or srun: a RANK exported once in a
// shell would otherwise make every process the same rank.
func (v *vars) torchrun() (Worker, error) {
	w := v.common(SourceTorch)
	v.torchRanks(&w)
	if !v.has("TORCHELASTIC_RUN_ID") {
		v.agree("RANK", w.Rank, "OMPI_COMM_WORLD_RANK")
		v.agree("WORLD_SIZE", w.Size, "OMPI_COMM_WORLD_SIZE")
		v.agree("RANK", w.Rank, "PMI_RANK")
		v.agree("WORLD_SIZE", w.Size, "PMI_SIZE")
		if v.has("SLURM_STEP_NUM_TASKS") && v.m["SLURM_STEP_NUM_TASKS"] != "1" {
			v.agree("RANK", w.Rank, "SLURM_PROCID")
			v.agree("WORLD_SIZE", w.Size, "SLURM_STEP_NUM_TASKS")
		}
	}
	return w, v.checked(w)
}

func (v *vars) torchRanks(w *Worker) {
	w.Rank = v.number("RANK", 0, maxCount)
	w.Size = v.number("WORLD_SIZE", 1, maxCount)
	if w.Size == 1 && !v.hasAny("LOCAL_RANK", "LOCAL_WORLD_SIZE") {
		w.LocalSize = 1
		return
	}
	w.LocalRank = v.number("LOCAL_RANK", 0, maxCount)
	w.LocalSize = v.number("LOCAL_WORLD_SIZE", 1, maxCount)
	w.Node = v.optional("GROUP_RANK", 0)
}

// common fills what every launcher may add.
func (v *vars) common(source string) Worker {
	return Worker{
		Source:      source,
		MasterAddr:  v.m["MASTER_ADDR"],
		MasterPort:  v.port("MASTER_PORT"),
		RunID:       v.m["TORCHELASTIC_RUN_ID"],
		Restart:     v.optional("TORCHELASTIC_RESTART_COUNT", 0),
		MaxRestarts: v.optional("TORCHELASTIC_MAX_RESTARTS", 0),
		ControlFD:   noDescriptor,
		ProgressFD:  noDescriptor,
	}
}

// checked returns the first error met, or what is wrong with w as a whole.
func (v *vars) checked(w Worker) error {
	switch {
	case v.err != nil:
		return v.err
	case w.Rank >= w.Size:
		return fmt.Errorf("rank %d is not below the number of ranks, %d (set by %s)", w.Rank, w.Size, w.Source)
	case w.LocalRank >= w.LocalSize:
		return fmt.Errorf("local rank %d is not below the number of ranks on this node, %d (set by %s)", w.LocalRank, w.LocalSize, w.Source)
	case w.LocalSize > w.Size:
		return fmt.Errorf("%d ranks on this node are more than the %d ranks of the job (set by %s)", w.LocalSize, w.Size, w.Source)
	}
	return nil
}

// ofMachine says that the variable called key speaks of the machine and not of a worker:
// where its libraries are, and what was compiled for its GPUs.
func ofMachine(key string) bool {
	return strings.HasPrefix(key, "EBTRAIN_CUDA_") || key == "EBTRAIN_LIBDNNL"
}

// Without returns environ without the variables that describe a worker or
// carry the job's key, so that a launcher's own do not reach its workers.
func Without(environ []string) []string {
	var out []string
	for _, kv := range environ {
		key, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(key, "EBTRAIN_") && !ofMachine(key) || strings.HasPrefix(key, "TORCHELASTIC_") {
			continue
		}
		switch key {
		case "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
			"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "MPI_LOCALRANKID", "MPI_LOCALNRANKS": // PMI is this launcher's, and it has left it
			continue
		}
		out = append(out, kv)
	}
	return out
}
