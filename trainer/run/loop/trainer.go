package loop

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/trace"
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

// ErrDiverged means that a number of the report is not finite.
var ErrDiverged = errors.New("training diverged")

// Outcome is how a run ended.
type Outcome uint8

const (
	Finished Outcome = iota + 1 // all steps are done
	Stopped                     // asked to stop before that, or before the last samples; a checkpoint of the last step is in place
)

// Trainer is a run that is ready to go.
type Trainer struct {
	cfg    Config
	parts  Parts
	specs  []nn.Variable // as a checkpoint has them
	shared ddp.Parts     // of the variables of specs
	vars   exec.Vars
	step   *program     // that of the step under way
	whole  exec.Program // makes whole weights of parts, nil if there are none
	fresh  int64        // whole weights are those after so many steps
	sample *chain.Chain // rank 0 only, nil if no grids are made

	programs map[int]*program // of sentences, by length; nil of other samples
	reduced  collective.Comm  // what programs reduce over

	next  int64 // the number of steps done, which is the step to run
	saved int64 // the step of the newest checkpoint that all who write them have, noStep if none
	own   int64 // the step of this rank's newest checkpoint when the run was resumed, noStep if none
	// undrawn: the last samples that were due are left out, since rank 0 was asked to stop.
	undrawn bool
	// unread is why the loader has no next batch for this rank, nil if it has.
	unread error

	queue    []flight      // the steps that are launched and not done, oldest first
	notice   [1]uint8      // 1 where a rank wants to stop, while steps are queued
	ended    time.Time     // when the last step was done
	names    []string      // of the report
	values   []float64     // of the last step's report
	replicas *ddp.Replicas // nil until they are compared

	recorder *trace.Recorder // of the step under way, nil if it is not traced

	until int64          // before the step of this number all steps must be done; 0 is none
	trace bool           // the next step is traced for Trace
	spans [][]trace.Span // what Trace asked for
}

// New compiles the programs, sets every variable to its initial value, to that of
// cfg.From or to that of the newest checkpoint, and makes sure that all ranks agree on both.
func New(ctx context.Context, cfg Config, parts Parts) (*Trainer, error) {
	t := &Trainer{cfg: cfg, parts: parts, saved: noStep, own: noStep, names: algo.Names(parts.Model.Report())}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trainer) prepare(ctx context.Context) error {
	sequential, err := t.sequential()
	if err != nil {
		return err
	}
	b, err := t.build(0)
	if err != nil {
		return err
	}
	t.specs, t.shared, t.vars = b.specs, b.shared, t.parts.Backend.NewVars()
	resumed := false
	if t.cfg.Resume {
		if resumed, err = t.restore(ctx); err != nil {
			return err
		}
	}
	if t.cfg.From != "" && !resumed {
		if err := t.begin(); err != nil {
			return err
		}
	}
	if err := nn.Initialise(t.vars, nn.OfRank(t.specs, t.shared.State), t.cfg.Seed); err != nil {
		return err
	}
	if err := t.shared.Cut(t.vars, t.rank()); err != nil {
		return err
	}
	t.fresh = t.next
	if t.reduced, err = t.parts.Backend.Connect(ctx, t.parts.Comm); err != nil {
		return err
	}
	if p := t.cfg.Profile; p.File != "" && p.Step < t.next {
		t.parts.Log.Warn("no trace will be written: the step was done before the resume", "step", p.Step, "resumed_at", t.next)
	}
	var text strings.Builder
	text.WriteString(t.header())
	if sequential {
		t.programs, t.queue = map[int]*program{}, make([]flight, 0, 1)
	} else {
		if t.step, err = t.compile(b); err != nil {
			return err
		}
		t.queue = make([]flight, 0, t.step.depth())
		if err := b.dump(&text); err != nil {
			return err
		}
	}
	if err := t.agree(ctx, text.String()); err != nil {
		return err
	}
	return t.prepareSamples()
}

// agree compares programs and weights of all ranks.
func (t *Trainer) agree(ctx context.Context, program string) error {
	if t.parts.Comm == nil {
		return nil
	}
	t.tell(t.next, "agree on the program")
	if err := ddp.Agree(ctx, t.parts.Comm, "program", program); err != nil {
		return err
	}
	return t.checkReplicas(ctx)
}

func (t *Trainer) checkReplicas(ctx context.Context) error {
	if t.parts.Comm == nil {
		return nil
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	t.tell(t.next, "compare replicas")
	if t.replicas == nil {
		var names []string
		for _, v := range nn.Replicated(t.specs) {
			if t.part(v.Name) == nil {
				names = append(names, v.Name)
			}
		}
		t.replicas = ddp.NewReplicas(t.parts.Comm, t.vars, names)
	}
	return t.replicas.Compare(ctx)
}

// Run trains until all steps are done, a rank is asked to stop, or a rank cannot
// read its next batch, which is an error after a checkpoint.
func (t *Trainer) Run(ctx context.Context) (Outcome, error) {
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Started(t.next); err != nil {
			return 0, err
		}
		if err := t.announceMoments(); err != nil {
			return 0, err
		}
	}
	if t.next > 0 { // who was sent a checkpoint keeps it, before anything else can go wrong
		if err := t.save(ctx); err != nil {
			return 0, err
		}
		if t.keeps() { // who was killed may have been about to, and if all is done nobody will
			t.prune()
		}
	}
	if err := t.firstBatch(ctx); err != nil {
		return 0, err
	}
	if t.cfg.Resume && t.next == t.cfg.Steps { // it may have ended before its last samples
		if err := t.showSamples(ctx); err != nil {
			return 0, err
		}
	}
	stop := false
	for t.next < t.cfg.Steps && !stop {
		var err error
		if stop, err = t.one(ctx); err != nil {
			return 0, err
		}
	}
	var unreadable error
	if stop && t.next < t.cfg.Steps {
		unreadable = t.unreadable(ctx)
	}
	if err := t.checkReplicas(ctx); err != nil {
		return 0, err
	}
	if err := t.save(ctx); err != nil {
		return 0, err
	}
	t.listDamage()
	if unreadable != nil {
		return 0, t.noData(unreadable)
	}
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Ended(t.next); err != nil {
			return 0, err
		}
	}
	if stop && t.next < t.cfg.Steps || t.undrawn {
		return Stopped, nil
	}
	return Finished, nil
}

// Close releases the programs.
func (t *Trainer) Close() error {
	var errs []error
	if t.step != nil && t.programs == nil {
		errs = append(errs, t.step.Close())
	}
	for _, p := range t.programs {
		errs = append(errs, p.Close())
	}
	if t.sample != nil {
		errs = append(errs, t.sample.Close())
	}
	if t.whole != nil {
		errs = append(errs, t.whole.Close())
	}
	return errors.Join(errs...)
}

func (t *Trainer) rank() int {
	if t.parts.Comm == nil {
		return 0
	}
	return t.parts.Comm.Rank()
}

func (t *Trainer) world() int {
	if t.parts.Comm == nil {
		return 1
	}
	return t.parts.Comm.Size()
}

func (t *Trainer) tell(step int64, phase string) {
	if t.parts.Progress != nil {
		t.parts.Progress(step, phase)
	}
}
