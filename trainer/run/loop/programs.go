package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// A step of pictures is one program, compiled before the first. A step of sentences
// is one of a few, by the length of the batch: each is compiled when its length is
// first met, on all ranks at once, for all of them see the same bucket, and compared
// between them then. They share the variables. Of several programs none is queued
// behind another.

// program is a compiled step.
type program struct {
	exec.Program
	feedOwn func(step int64, epoch int) // the model's own inputs
	waited  time.Duration               // of its steps done, for collectives
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

// stepGraph is this rank's training step of batches of that length, 0 for samples
// that have none and for the longest.
func (t *Trainer) stepGraph(length int) (*graph.Graph, []nn.Variable, error) {
	parts, what := t.world(), "ranks"
	if t.cfg.Shards > 0 {
		parts, what = t.cfg.Shards, "virtual shards"
	}
	if t.cfg.Batch < 1 || t.cfg.Batch%parts != 0 {
		return nil, nil, fmt.Errorf("batch %d does not divide evenly among %d %s", t.cfg.Batch, parts, what)
	}
	g, specs, err := algo.StepOf(t.parts.Model, length, parts, t.cfg.Batch/parts)
	if err != nil || t.cfg.Shards == 0 {
		return g, specs, err
	}
	g, err = ddp.Virtualise(g, ddp.Shards{Virtual: parts, World: t.world(), Batch: t.cfg.Batch / parts, Split: algo.Split(), Key: algo.InputKey})
	return g, specs, err
}

// compile compiles a step.
func (t *Trainer) compile(g *graph.Graph) (*program, error) {
	o := exec.Options{Name: "step", Vars: t.vars, Comm: t.reduced, Remat: t.cfg.Remat, MaxBytes: t.cfg.MaxBytes, Deterministic: t.cfg.Shards > 0}
	if t.cfg.Profile.File != "" {
		o.Trace = t.events
	}
	p, err := t.parts.Backend.Compile(g, o)
	if err != nil {
		return nil, err
	}
	return &program{Program: p, feedOwn: t.parts.Model.Feeder(p)}, nil
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
	g, specs, err := t.stepGraph(length)
	if err != nil {
		return err
	}
	if err := sameVariables(specs, t.specs); err != nil {
		return fmt.Errorf("the step of sentences of %d tokens: %w", length, err)
	}
	if t.step, err = t.compile(g); err != nil {
		return err
	}
	t.programs[length] = t.step
	var text strings.Builder
	if err := g.Dump(&text); err != nil {
		return err
	}
	if t.parts.Comm != nil {
		if err := ddp.Agree(ctx, t.parts.Comm, fmt.Sprintf("program for %d tokens", length), text.String()); err != nil {
			return err
		}
	}
	return t.compiled(step, length, len(g.Nodes()), time.Since(begin))
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
