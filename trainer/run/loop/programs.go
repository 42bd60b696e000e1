package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// A step of pictures is one program, compiled before the first. A step of sentences
// is one of a few, by the length of the batch: each is compiled when its length is
// first met, on all ranks at once, for all of them see the same bucket, and compared
// between them then. They share the variables. Of several programs none is queued
// behind another.

// program is a compiled step, and what runs before it.
type program struct {
	exec.Program
	stages  []stage
	feedOwn func(step int64, epoch int) // the model's own inputs, and that of averages
	waited  time.Duration               // of its steps done, for collectives
}

// stage is a compiled stage of algo.Staged.
type stage struct {
	exec.Program
	times int
}

// Close releases the programs.
func (p *program) Close() error {
	errs := []error{p.Program.Close()}
	for _, s := range p.stages {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// prepare runs what comes before the step.
func (p *program) prepare(ctx context.Context) error {
	for i := range p.stages {
		for range p.stages[i].times {
			if err := exec.Run(ctx, p.stages[i].Program); err != nil {
				return err
			}
		}
	}
	return nil
}

// Announcer is an Observer that is told, in a line, what takes a while.
type Announcer interface {
	Announce(line string) error
}

// sequential says whether the model takes sentences, and reports data that are not
// of its kind.
func (t *Trainer) sequential() (bool, error) {
	_, takes := t.parts.Model.(algo.Sequential)
	if has := t.parts.Loader.Buckets() != nil; has != takes {
		return takes, fmt.Errorf("sentences need a model of sentences, and such a model sentences: the data are sentences: %v, the model takes them: %v", has, takes)
	}
	return takes, nil
}

// built is what is to be compiled.
type built struct {
	step   *graph.Graph
	stages []chain.Stage
	specs  []nn.Variable
	shared ddp.Parts    // of the variables of specs
	whole  *graph.Graph // makes whole weights of parts, nil if the step leaves none in parts
}

// nodes is how many there are in all graphs.
func (b built) nodes() int {
	n := len(b.step.Nodes())
	for _, s := range b.stages {
		n += len(s.Graph.Nodes())
	}
	return n
}

// dump is all graphs as text.
func (b built) dump(text *strings.Builder) error {
	for _, s := range b.stages {
		fmt.Fprintf(text, "stage %s, %d times\n", s.Name, s.Times)
		if err := s.Graph.Dump(text); err != nil {
			return err
		}
	}
	if b.whole != nil {
		text.WriteString("whole weights\n")
		if err := b.whole.Dump(text); err != nil {
			return err
		}
	}
	return b.step.Dump(text)
}

// build is this rank's training step of batches of that length, 0 for samples that have
// none and for the longest.
func (t *Trainer) build(length int) (b built, err error) {
	parts, what := t.world(), "ranks"
	if t.cfg.Shards > 0 {
		parts, what = t.cfg.Shards, "virtual shards"
	}
	if t.cfg.Batch < 1 || t.cfg.Batch%parts != 0 {
		return b, fmt.Errorf("batch %d does not divide evenly among %d %s", t.cfg.Batch, parts, what)
	}
	if b.step, b.specs, err = algo.StepOf(t.parts.Model, length, parts, t.cfg.Batch/parts); err != nil {
		return b, err
	}
	if b.stages, err = algo.StagesOf(t.parts.Model, length, parts, t.cfg.Batch/parts); err != nil {
		return b, err
	}
	if t.cfg.Average != 0 {
		b.step, b.specs, err = optim.Average{Decay: t.cfg.Average}.Add(b.step, b.specs)
	}
	if t.cfg.Shards > 0 && err == nil {
		err = t.virtualise(&b, parts)
	}
	if t.cfg.ShardOptimizer && err == nil {
		err = b.shard(t.world(), t.cfg.Shards > 0)
	}
	return b, err
}

// virtualise makes of a step of one of so many virtual ranks that of a real one.
func (t *Trainer) virtualise(b *built, parts int) (err error) {
	shards := ddp.Shards{Virtual: parts, World: t.world(), Batch: t.cfg.Batch / parts, Split: algo.Split(b.specs), Key: algo.InputKey}
	b.specs = algo.OfShards(b.specs, parts/t.world())
	for i := range b.stages {
		if b.stages[i].Graph, err = ddp.Virtualise(b.stages[i].Graph, shards.Of(b.stages[i].Graph)); err != nil {
			return fmt.Errorf("stage %s: %w", b.stages[i].Name, err)
		}
	}
	b.step, err = ddp.Virtualise(b.step, shards.Of(b.step))
	return err
}

// compile compiles a step and its stages.
func (t *Trainer) compile(b built) (p *program, err error) {
	o := exec.Options{Name: "step", Vars: t.vars, Comm: t.reduced, Remat: t.cfg.Remat, MaxBytes: t.cfg.MaxBytes, Deterministic: t.cfg.Shards > 0}
	if t.cfg.Profile.File != "" || t.cfg.Traceable {
		o.Trace = t.events
	}
	step, err := t.parts.Backend.Compile(b.step, o)
	if err != nil {
		return nil, err
	}
	p = &program{Program: step, feedOwn: t.feeder(step)}
	for _, s := range b.stages {
		o.Name = s.Name
		one, err := t.parts.Backend.Compile(s.Graph, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stage %s: %w", s.Name, err), p.Close())
		}
		p.stages = append(p.stages, stage{one, s.Times})
	}
	if b.whole != nil && t.whole == nil { // behind a step, which decides how variables lie
		o.Name, o.Trace = "whole weights", nil
		if t.whole, err = t.parts.Backend.Compile(b.whole, o); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// feeder fills the inputs of a step that are functions of its number and epoch.
func (t *Trainer) feeder(p exec.Program) func(step int64, epoch int) {
	own := t.parts.Model.Feeder(p)
	if t.cfg.Average == 0 {
		return own
	}
	average := optim.Average{Decay: t.cfg.Average}.Feeder(p)
	return func(step int64, epoch int) {
		own(step, epoch)
		average(step)
	}
}

// depth is how many steps of a program may be queued: what runs before a step reads
// what the step before it has left, so such steps are not.
func (p *program) depth() int {
	if len(p.stages) > 0 {
		return 1
	}
	return p.Depth()
}

// header is what ranks have to agree on besides their programs.
func (t *Trainer) header() string {
	var text strings.Builder
	fmt.Fprintf(&text, "settings %s\nworld %d\nsteps %d\nstart at step %d\n", t.cfg.Digest, t.world(), t.cfg.Steps, t.next)
	for _, b := range t.parts.Loader.Buckets() {
		fmt.Fprintf(&text, "%d sentences in batches of %d tokens\n", b.N, b.Length)
	}
	return text.String()
}

// use makes the step of batches of that length the one that is run next. All ranks
// call it, with the same length.
func (t *Trainer) use(ctx context.Context, step int64, length int) (err error) {
	if t.programs == nil { // a step of any batch
		return nil
	}
	if t.step = t.programs[length]; t.step != nil {
		return nil
	}
	begin := time.Now()
	t.tell(step, "compile")
	b, err := t.build(length)
	if err != nil {
		return err
	}
	if err := errors.Join(sameVariables(b.specs, t.specs), sameParts(b.shared, t.shared)); err != nil {
		return fmt.Errorf("the step of sentences of %d tokens: %w", length, err)
	}
	if t.step, err = t.compile(b); err != nil {
		return err
	}
	t.programs[length] = t.step
	var text strings.Builder
	if err := b.dump(&text); err != nil {
		return err
	}
	if t.parts.Comm != nil {
		if err := ddp.Agree(ctx, t.parts.Comm, fmt.Sprintf("program for %d tokens", length), text.String()); err != nil {
			return err
		}
	}
	return t.compiled(step, length, b.nodes(), time.Since(begin))
}

// sameVariables: a step reads and leaves the variables that all have.
func sameVariables(got, want []nn.Variable) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d variables, and that of the longest has %d", len(got), len(want))
	}
	for i, v := range got {
		if v.Name != want[i].Name || v.Type != want[i].Type || v.Role != want[i].Role {
			return fmt.Errorf("variable %s %v, and that of the longest has %s %v", v.Name, v.Type, want[i].Name, want[i].Type)
		}
	}
	return nil
}

// compiled says, in a line, that a program has been.
func (t *Trainer) compiled(step int64, length, nodes int, took time.Duration) error {
	t.parts.Log.Info("compiled a step of sentences", "step", step, "tokens", length, "nodes", nodes, "took", took)
	a, ok := t.parts.Observer.(Announcer)
	if !ok {
		return nil
	}
	return a.Announce(fmt.Sprintf("step %d: compiled for sentences of up to %d tokens in %.1f s, %d nodes", step, length, took.Seconds(), nodes))
}
