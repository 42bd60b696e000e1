// Package env is the environment of a worker process: who it is among the
// ranks of its job, and how it reaches its launcher.
//
// Parse reads it, from ddplaunch and from other launchers (torchrun, mpirun,
// srun); Worker.Environ writes it. The package is pure: it never looks at the
// process's own environment and keeps no state.
//
// Invariants of every Worker that Parse returns without an error:
//   - 0 ≤ Rank < Size, 0 ≤ LocalRank < LocalSize ≤ Size.
//   - Size is 1 only if nothing in the environment speaks of more ranks, or a
//     launcher says so: a world of one is never formed by accident.
package env

import (
	"strconv"
	"strings"
)

// Sources of a Worker: who started the process.
const (
	SourceNone   = "alone"     // nothing: a world of one
	SourceEbt    = "ddplaunch" // this project's launcher, with a control channel
	SourceTorch  = "torchrun"  // RANK and WORLD_SIZE without a control channel
	SourceOMPI   = "mpirun (Open MPI)"
	SourcePMI    = "mpiexec (PMI)"
	SourceSLURM  = "srun"
	noDescriptor = -1
)

// GroupVar is the variable of Worker.Group. What a rank has started has it too.
const GroupVar = "EBTRAIN_GROUP"

// Worker is one process's place in its job. Counts and indices start at 0
// unless a field says otherwise.
type Worker struct {
	Source string // one of the Source constants

	Rank, Size           int // place among all ranks, number of ranks
	LocalRank, LocalSize int // place among the ranks of this node, their number
	Node                 int // number of the node (GROUP_RANK)

	MasterAddr string // host or IP of node 0; "" if not told
	MasterPort int    // a port for other programs' use; 0 if not told

	RunID       string // the user's name for the job; not unique
	Restart     int    // how often the group was restarted: the epoch
	MaxRestarts int
	Group       string // unique name of the job in this epoch; "" outside ddplaunch

	// ControlFD is the inherited socket to the launcher and ProgressFD the
	// inherited memory that holds this rank's progress; -1 means none.
	ControlFD, ProgressFD int

	// Terminal says that the launcher's output is a terminal, so a progress
	// bar redrawn with carriage returns is welcome; otherwise print lines.
	// It is meaningful only if Source is SourceEbt.
	Terminal bool
}

// Alone reports whether the process has neither a launcher nor other ranks, whoever has
// started it: srun -n1 and the like start one on a machine of a cluster.
func (w Worker) Alone() bool { return w.Size == 1 && w.ControlFD < 0 }

// Follows reports whether group is the Group of an earlier epoch of w's job: what
// was begun there, w goes on with.
func (w Worker) Follows(group string) bool {
	job, ok := strings.CutSuffix(w.Group, "-e"+strconv.Itoa(w.Restart))
	epoch, same := strings.CutPrefix(group, job+"-e")
	n, err := strconv.Atoi(epoch)
	return ok && same && err == nil && 0 <= n && n < w.Restart
}

// Environ returns the variables, as KEY=value, that make Parse return w.
func (w Worker) Environ() []string {
	n := strconv.Itoa
	e := []string{
		"RANK=" + n(w.Rank),
		"WORLD_SIZE=" + n(w.Size),
		"LOCAL_RANK=" + n(w.LocalRank),
		"LOCAL_WORLD_SIZE=" + n(w.LocalSize),
		"GROUP_RANK=" + n(w.Node),
		"MASTER_ADDR=" + w.MasterAddr,
		"MASTER_PORT=" + n(w.MasterPort),
		"TORCHELASTIC_RUN_ID=" + w.RunID,
		"TORCHELASTIC_RESTART_COUNT=" + n(w.Restart),
		"TORCHELASTIC_MAX_RESTARTS=" + n(w.MaxRestarts),
		GroupVar + "=" + w.Group,
		"EBTRAIN_EPOCH=" + n(w.Restart),
	}
	if w.ControlFD >= 0 {
		e = append(e, "EBTRAIN_CONTROL_FD="+n(w.ControlFD))
	}
	if w.ProgressFD >= 0 {
		e = append(e, "EBTRAIN_PROGRESS_FD="+n(w.ProgressFD))
	}
	if w.Terminal {
		return append(e, "EBTRAIN_PROGRESS=tty")
	}
	return append(e, "EBTRAIN_PROGRESS=plain")
}
