package loop

import (
	"context"
	"errors"
	"strings"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/trace"
)

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
	shown  exec.Vars    // which it draws from: vars, or averages in the place of weights

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

// prepare does the work of New, in an order that is the same on all ranks.
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
	if err := t.setFirstValues(ctx); err != nil {
		return err
	}
	if t.reduced, err = t.parts.Backend.Connect(ctx, t.parts.Comm); err != nil {
		return err
	}
	if p := t.cfg.Profile; p.File != "" && p.Step < t.next {
		t.parts.Log.Warn("no trace will be written: the step was done before the resume", "step", p.Step, "resumed_at", t.next)
	}
	var text strings.Builder
	text.WriteString(t.header())
	if sequential { // programs are compiled when their length is met
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

// setFirstValues sets every variable to what the first step finds, with this rank's parts of
// those that are shared.
func (t *Trainer) setFirstValues(ctx context.Context) error {
	resumed := false
	if t.cfg.Resume {
		var err error
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
	if !resumed {
		if err := t.beginAverages(); err != nil {
			return err
		}
	}
	if err := t.shared.Cut(t.vars, t.rank()); err != nil {
		return err
	}
	t.fresh = t.next
	return nil
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

// checkReplicas makes sure that all ranks have the same values of what each has all of. All
// ranks call it.
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
	if err := t.start(ctx); err != nil {
		return 0, err
	}
	stop := false
	for t.next < t.cfg.Steps && !stop {
		var err error
		if stop, err = t.takeStep(ctx); err != nil {
			return 0, err
		}
	}
	early := t.next < t.cfg.Steps
	if err := t.end(ctx, early); err != nil {
		return 0, err
	}
	if early || t.undrawn {
		return Stopped, nil
	}
	return Finished, nil
}

// start does what comes before the first step of Run.
func (t *Trainer) start(ctx context.Context) error {
	if t.parts.Observer != nil {
		if err := t.parts.Observer.Started(t.next); err != nil {
			return err
		}
		if err := t.announceMoments(); err != nil {
			return err
		}
	}
	if t.next > 0 { // who was sent a checkpoint keeps it, before anything else can go wrong
		if err := t.save(ctx); err != nil {
			return err
		}
		if t.keeps() { // who was killed may have been about to, and if all is done nobody will
			t.prune()
		}
	}
	if err := t.firstBatch(ctx); err != nil {
		return err
	}
	if t.cfg.Resume && t.next == t.cfg.Steps { // it may have ended before its last samples
		return t.showSamples(ctx)
	}
	return nil
}

// end does what comes after the last step of Run, which is early if steps are left: some rank
// was asked to stop, or has no data, and then that is the error, behind a checkpoint.
func (t *Trainer) end(ctx context.Context, early bool) error {
	var unreadable error
	if early {
		unreadable = t.unreadable(ctx)
	}
	if err := t.checkReplicas(ctx); err != nil {
		return err
	}
	if err := t.save(ctx); err != nil {
		return err
	}
	t.listDamage()
	if unreadable != nil {
		return t.noData(unreadable)
	}
	if t.parts.Observer != nil {
		return t.parts.Observer.Ended(t.next)
	}
	return nil
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

// rank is this rank's, 0 in a world of one.
func (t *Trainer) rank() int {
	if t.parts.Comm == nil {
		return 0
	}
	return t.parts.Comm.Rank()
}

// world is how many ranks there are.
func (t *Trainer) world() int {
	if t.parts.Comm == nil {
		return 1
	}
	return t.parts.Comm.Size()
}

// tell says what this rank does next, and in which step, to who watches it.
func (t *Trainer) tell(step int64, phase string) {
	if t.parts.Progress != nil {
		t.parts.Progress(step, phase)
	}
}
