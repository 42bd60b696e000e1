package loop

import (
	"log/slog"
	"time"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// Config is the plan of a run.
type Config struct {
	Batch int    // samples per step over all ranks
	Steps int64  // of the whole run, counted from 0 whatever was resumed
	Seed  uint64 // of all random numbers
	// Shards is the number of virtual shards of the global batch, a power of
	// two; any number of ranks that divides it gives the same bits, if the
	// backend's kernels do. 0 cuts the batch by ranks.
	Shards int
	// Digest identifies everything that defines the computation. A checkpoint
	// made under another digest is refused.
	Digest string
	// Average is the decay of the moving averages of weights, as optim.Average has it, that
	// checkpoints hold and samples are drawn from; 0 keeps none.
	Average float64
	// ShardOptimizer has each rank keep a part of the optimisers' moments and move that
	// part of the weights: the same losses and weights, less memory. See ddp.ShardOptimizer.
	ShardOptimizer bool

	// From is a checkpoint, of another run perhaps, whose weights this one begins with; ""
	// begins with those of the seed. What it has learned must be what FromDigest names.
	From, FromDigest string
	FromNetworks     []string // of From, with which those of the model begin; others as of the seed; nil is all

	CkptDir     string // "" writes no checkpoints
	CkptEvery   int64  // steps between checkpoints; 0 only at the end
	CkptKeep    int    // newest checkpoints that are kept; 0 keeps all
	Resume      bool   // go on from the newest checkpoint, if there is one
	SampleEvery int64  // steps between sample grids; 0 only at the end
	SampleCount int    // pictures in a grid; 0 makes none
	CheckEvery  int64  // steps between comparisons of all replicas; 0 only at the end
	Profile     Profile
	Traceable   bool  // Trace will be called
	MaxBytes    int64 // of the step's intermediate values on this rank; 0 is any
	Remat       bool  // compute again what need not be kept: less memory, the same numbers, more time
}

// Parts are what a run is made of. All but Observer, Stop and Progress are
// required; Comm is nil in a world of one. The loop itself talks over Comm; what
// programs reduce over, Backend.Connect makes of it.
type Parts struct {
	Model    algo.Model
	Backend  exec.Backend
	Comm     collective.Comm
	Loader   *loader.Loader
	Log      *slog.Logger
	Observer Observer                       // rank 0's view, and that of who keeps checkpoints on another host; nil elsewhere
	Stop     <-chan struct{}                // closed when this rank is asked to stop
	Progress func(step int64, phase string) // told what happens next; may be nil
}

// Observer sees what is shown and kept: all of it on rank 0. A rank with an
// Observer writes checkpoints.
type Observer interface {
	// Started says at which step the run begins: 0, or where it was resumed.
	Started(step int64) error
	// Stepped reports a finished step.
	Stepped(Record) error
	// Sampled shows samples (n, C, H, W), drawn after step steps.
	Sampled(step int64, samples *exec.Tensor) error
	// Saving says that a checkpoint of step steps is about to be written: what
	// was kept of those steps must now survive as long as it does.
	Saving(step int64) error
	// Saved says that the checkpoint of step steps is in place.
	Saved(step int64) error
	// Ended says that the run ends in good order, steps steps done.
	Ended(steps int64) error
}

// Record is the account of one step. Names and Values are the loop's own and
// valid during the call that shows them.
type Record struct {
	Step    int64 // from 0
	Epoch   int64 // from 0
	Samples int64 // over all ranks, since the beginning of the run
	Names   []string
	Values  []float64 // by Names; all ranks have the same

	StepTime time.Duration // whole step
	DataTime time.Duration // of it, waiting for the loader
	CommTime time.Duration // of it, waiting for collectives
}
