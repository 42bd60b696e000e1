package env

import (
	"slices"
	"strings"
	"testing"
)

func TestParseGood(t *testing.T) {
	none := Worker{ControlFD: -1, ProgressFD: -1}
	with := func(f func(*Worker)) Worker { w := none; f(&w); return w }
	tests := []struct {
		name, in string
		want     Worker
	}{
		{"nothing", "HOME=/root PATH=/bin", with(func(w *Worker) { w.Source, w.Size, w.LocalSize = SourceNone, 1, 1 })},
		{"MASTER_ADDR alone is no claim", "MASTER_ADDR=h", with(func(w *Worker) { w.Source, w.Size, w.LocalSize = SourceNone, 1, 1 })},
		{"torchrun", "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_RUN_ID=j",
			with(func(w *Worker) {
				w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize, w.Node = SourceTorch, 3, 4, 1, 2, 1
				w.MasterAddr, w.MasterPort, w.RunID = "h", 29500, "j"
			})},
		{"a world of one that says so", "RANK=0 WORLD_SIZE=1", with(func(w *Worker) { w.Source, w.Size, w.LocalSize = SourceTorch, 1, 1 })},
		{"Open MPI", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourceOMPI, 1, 2, 1, 2 })},
		{"Hydra", "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourcePMI, 1, 4, 1, 2 })},
		{"srun --mpi=pmi2", "PMI_RANK=4 PMI_SIZE=5 PMI_JOBID=7.0 PMI_FD=9 SLURM_PROCID=4 SLURM_LOCALID=0 SLURM_NODEID=2 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_TASKS_PER_NODE=2(x2),1",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalSize, w.Node = SourcePMI, 4, 5, 1, 2 })},
		{"Hydra inside a batch script's step", "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2)",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourcePMI, 1, 4, 1, 2 })},
		{"srun, one task per rank; job variables ignored", "SLURM_NTASKS=99 SLURM_PROCID=4 SLURM_LOCALID=0 SLURM_NODEID=2 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_TASKS_PER_NODE=2(x2),1",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalSize, w.Node = SourceSLURM, 4, 5, 1, 2 })},
		{"srun --pty shell", "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", with(func(w *Worker) { w.Source, w.Size, w.LocalSize = SourceSLURM, 1, 1 })},
		{"batch script of one task", "SLURM_NTASKS=1 SLURM_PROCID=0", with(func(w *Worker) { w.Source, w.Size, w.LocalSize = SourceNone, 1, 1 })},
		{"torchrun under srun is not a contradiction", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=j SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
			with(func(w *Worker) {
				w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize, w.RunID = SourceTorch, 1, 2, 1, 2, "j"
			})},
		{"torchrun under mpirun is not a contradiction", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=j OMPI_COMM_WORLD_RANK=0",
			with(func(w *Worker) {
				w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize, w.RunID = SourceTorch, 1, 2, 1, 2, "j"
			})},
		{"Open MPI in a step of PMI", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMI_RANK=0 PMI_SIZE=1",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourceOMPI, 1, 2, 1, 2 })},
		{"a script's ranks in a batch script, which is in no step", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 SLURM_NTASKS=2 SLURM_PROCID=0",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourceTorch, 1, 2, 1, 2 })},
		{"a script's ranks in a step of one task", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
			with(func(w *Worker) { w.Source, w.Rank, w.Size, w.LocalRank, w.LocalSize = SourceTorch, 1, 2, 1, 2 })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(strings.Fields(tt.in))
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// A number may have blanks around it, as scripts leave them.
func TestParseBlanks(t *testing.T) {
	w, err := Parse([]string{"RANK= 1", "WORLD_SIZE=2 ", "LOCAL_RANK=1\t", "LOCAL_WORLD_SIZE=2"})
	if err != nil || w.Rank != 1 || w.Size != 2 || w.LocalRank != 1 {
		t.Errorf("got %+v, %v", w, err)
	}
}

func TestParseBad(t *testing.T) {
	const torch = "WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
	const ebt = "RANK=1 " + torch + "TORCHELASTIC_RESTART_COUNT=0 EBTRAIN_EPOCH=0 EBTRAIN_GROUP=g EBTRAIN_PROGRESS_FD=4 "
	const slurm = "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=2 "
	tests := []struct{ name, in, want string }{
		{"rank without size", "RANK=0", "WORLD_SIZE is not set"},
		{"size without rank", "WORLD_SIZE=2", "RANK is not set"},
		{"size one without rank", "WORLD_SIZE=1", "RANK is not set"},
		{"local rank alone", "LOCAL_RANK=0", "LOCAL_RANK is set but RANK is not"},
		{"local size alone", "LOCAL_WORLD_SIZE=2", "LOCAL_WORLD_SIZE is set but RANK is not"},
		{"no local rank", "RANK=0 WORLD_SIZE=2", "LOCAL_RANK is not set"},
		{"no local size", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0", "LOCAL_WORLD_SIZE is not set"},
		{"empty rank", "RANK= " + torch, `RANK="" is not a whole number`},
		{"word", "RANK=one " + torch, `RANK="one" is not a whole number`},
		{"fraction", "RANK=1.5 " + torch, `RANK="1.5" is not a whole number`},
		{"negative", "RANK=-1 " + torch, "RANK=-1 is out of range"},
		{"beyond int", "RANK=99999999999999999999 " + torch, "RANK="},
		{"rank = size", "RANK=4 " + torch, "rank 4 is not below the number of ranks, 4"},
		{"size zero", "RANK=0 WORLD_SIZE=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", "WORLD_SIZE=0 is out of range"},
		{"local rank too large", "RANK=1 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", "local rank 2 is not below"},
		{"more local ranks than ranks", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", "4 ranks on this node are more than the 2"},
		{"bad port", "RANK=1 MASTER_PORT=70000 " + torch, "MASTER_PORT=70000 is out of range"},
		{"bad restart count", "RANK=1 TORCHELASTIC_RESTART_COUNT=x " + torch, "TORCHELASTIC_RESTART_COUNT"},
		{"contradicts Open MPI", "RANK=1 OMPI_COMM_WORLD_RANK=0 " + torch, "RANK=1 contradicts OMPI_COMM_WORLD_RANK=0"},
		{"local rank of a world of one", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "local rank 1 is not below"},
		{"contradicts Open MPI's size", "RANK=1 OMPI_COMM_WORLD_SIZE=8 " + torch, "WORLD_SIZE=4 contradicts OMPI_COMM_WORLD_SIZE=8"},
		{"contradicts PMI", "RANK=1 PMI_RANK=0 " + torch, "RANK=1 contradicts PMI_RANK=0"},
		{"contradicts SLURM's size", "RANK=1 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=1 " + torch, "WORLD_SIZE=4 contradicts SLURM_STEP_NUM_TASKS=8"},
		{"SLURM against PMIx", slurm + "SLURM_STEP_TASKS_PER_NODE=2 PMIX_RANK=0", "SLURM_PROCID=1 contradicts PMIX_RANK=0"},
		{"contradicts PMI size", "RANK=1 PMI_SIZE=8 " + torch, "WORLD_SIZE=4 contradicts PMI_SIZE=8"},
		{"contradicts SLURM", "RANK=1 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 " + torch, "RANK=1 contradicts SLURM_PROCID=2"},
		{"half Open MPI", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE is not set"},
		{"Open MPI without local rank", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK is not set"},
		{"Open MPI against PMIx", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1", "contradicts PMIX_RANK=1"},
		{"half PMI", "PMI_SIZE=2", "PMI_RANK is not set"},
		{"PMI without local rank", "PMI_RANK=0 PMI_SIZE=2", "MPI_LOCALRANKID is not set"},
		{"srun --mpi=pmi2 without a local rank", "PMI_RANK=1 PMI_SIZE=2 SLURM_STEP_TASKS_PER_NODE=2", "SLURM_LOCALID is not set"},
		{"srun --mpi=pmi2 contradicts its step", "PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=0 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2", "PMI_RANK=1 contradicts SLURM_PROCID=0"},
		{"PMIx alone", "PMIX_RANK=0", "PMIX_RANK is set but no variable tells the number of ranks"},
		{"batch script of eight tasks", "SLURM_NTASKS=8 SLURM_PROCID=0", "SLURM_NTASKS=8 but this process is not in a step"},
		{"salloc shell of two tasks, in a step of its own", shell, "SLURM_NTASKS=2 but this process is not in a step"},
		{"batch script of two tasks", "SLURM_NTASKS=2 SLURM_PROCID=0", "SLURM_NTASKS=2 but this process is not in a step"},
		{"step without a task number", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID is not set"},
		{"step without task list", slurm, "SLURM_STEP_TASKS_PER_NODE is not set"},
		{"torn task list", slurm + "SLURM_STEP_TASKS_PER_NODE=2(x1", "no closing parenthesis"},
		{"bad task list", slurm + "SLURM_STEP_TASKS_PER_NODE=2(xa)", "is not of the form"},
		{"task list of another size", slurm + "SLURM_STEP_TASKS_PER_NODE=2(x3)", "adds up to 6"},
		{"node outside the list", "SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NODEID=5 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2", "SLURM_NODEID=5"},
		{"node just outside the list", "SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2", "SLURM_NODEID=1"},
		{"node without tasks", slurm + "SLURM_STEP_TASKS_PER_NODE=2,0", "is not of the form"},
		{"more nodes than there can be", slurm + "SLURM_STEP_TASKS_PER_NODE=1(x1048576),1", "more than 1048576 nodes"},
		{"control fd is a standard stream", ebt + "EBTRAIN_CONTROL_FD=1", "EBTRAIN_CONTROL_FD=1 is out of range"},
		{"control fd without ranks", "EBTRAIN_CONTROL_FD=3", "RANK is not set although EBTRAIN_CONTROL_FD is"},
		{"control fd without progress", "EBTRAIN_CONTROL_FD=3 RANK=1 EBTRAIN_EPOCH=0 EBTRAIN_GROUP=g " + torch, "EBTRAIN_PROGRESS_FD is not set"},
		{"no group", strings.Replace(ebt, "EBTRAIN_GROUP=g", "", 1) + "EBTRAIN_CONTROL_FD=3", "EBTRAIN_GROUP is not set"},
		{"other epoch", strings.Replace(ebt, "EBTRAIN_EPOCH=0", "EBTRAIN_EPOCH=1", 1) + "EBTRAIN_CONTROL_FD=3", "EBTRAIN_EPOCH=1 contradicts"},
		{"unknown progress style", ebt + "EBTRAIN_CONTROL_FD=3 EBTRAIN_PROGRESS=fancy", `EBTRAIN_PROGRESS="fancy"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := Parse(strings.Fields(tt.in))
			if err == nil {
				t.Fatalf("accepted as %+v", w)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, tt.want)
			}
		})
	}
}

// A process is alone that neither ddplaunch nor anybody else has given a place among ranks:
// also one that a batch system has started, or one of a world of one.
func TestAlone(t *testing.T) {
	for in, want := range map[string]bool{
		"":                                      true,
		"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1": true,
		"PMI_RANK=0 PMI_SIZE=1":                 true,
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1": true,
		"RANK=0 WORLD_SIZE=1": true,
		"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2":                                            false,
		"RANK=0 WORLD_SIZE=1 EBTRAIN_CONTROL_FD=3 EBTRAIN_PROGRESS_FD=4 EBTRAIN_GROUP=g EBTRAIN_EPOCH=0": false,
	} {
		if w, err := Parse(strings.Fields(in)); err != nil || w.Alone() != want {
			t.Errorf("%q: alone %v, %v, want %v", in, w.Alone(), err, want)
		}
	}
}

func TestEnvironRoundTrip(t *testing.T) {
	w := Worker{
		Source: SourceEbt, Rank: 3, Size: 6, LocalRank: 1, LocalSize: 2, Node: 1, MasterAddr: "::1", MasterPort: 4000,
		RunID: "exp", Restart: 2, MaxRestarts: 3, Group: "exp-12ab-e2", ControlFD: 3, ProgressFD: 4, Terminal: true,
	}
	noise := []string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "OMPI_COMM_WORLD_RANK=9"}
	got, err := Parse(append(noise, w.Environ()...))
	if err != nil || got != w {
		t.Errorf("got %+v, %v\nwant %+v", got, err, w)
	}
}

func TestFollows(t *testing.T) {
	w := Worker{Group: "exp-e1-12ab-e2", Restart: 2}
	for group, want := range map[string]bool{
		"exp-e1-12ab-e0": true, "exp-e1-12ab-e1": true, "exp-e1-12ab-e2": false, "exp-e1-12ab-e-1": false, "exp-e1-12ab-e": false,
		"exp-e1-34cd-e0": false, "exp-e1": false, "": false,
	} {
		if got := w.Follows(group); got != want {
			t.Errorf("%q: got %v, want %v", group, got, want)
		}
	}
	if alone := (Worker{}); alone.Follows("") || alone.Follows("-e0") {
		t.Error("a process without a group goes on with one")
	}
}

func TestWithout(t *testing.T) {
	machine := []string{"EBTRAIN_CUDA_LIBS=/a", "EBTRAIN_CUDA_CACHE=/b", "EBTRAIN_LIBDNNL=/c/libdnnl.so"}
	got := Without(append([]string{"A=1", "RANK=0", "EBTRAIN_KEY=secret", "PMI_FD=6", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2", "NCCL_DEBUG=INFO", "MASTER_PORT=1", "TORCHELASTIC_RUN_ID=x"}, machine...))
	if want := append([]string{"A=1", "NCCL_DEBUG=INFO"}, machine...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	worker := Worker{ControlFD: 3, ProgressFD: 4}.Environ()
	if left := Without(append(worker, "PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=1.0")); len(left) > 0 {
		t.Errorf("%q of a worker is left", left)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2(x3),1", "1", "2")
	f.Fuzz(func(t *testing.T, tasks, rank, size string) {
		w, err := Parse([]string{"SLURM_PROCID=" + rank, "SLURM_STEP_NUM_TASKS=" + size, "SLURM_LOCALID=0", "SLURM_NODEID=0", "SLURM_STEP_TASKS_PER_NODE=" + tasks})
		if err == nil && (w.Rank < 0 || w.Rank >= w.Size || w.LocalRank >= w.LocalSize || w.LocalSize > w.Size) {
			t.Errorf("accepted %+v", w)
		}
	})
}
