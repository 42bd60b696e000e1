package algotest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// stopColumn is the place of algo.ReportStop.
func stopColumn(columns []algo.Column) (int, error) {
	names, shown := algo.Names(columns), false
	for i, name := range names {
		if name == "" || slices.Index(names, name) != i {
			return 0, fmt.Errorf("the columns are %q: want a name of its own for each", names)
		}
		shown = shown || columns[i].Shown
	}
	at := slices.Index(names, algo.ReportStop)
	if at < 0 || columns[at].Shown || !shown {
		return 0, fmt.Errorf("the columns are %+v: want %s among them, not shown, and one that is", columns, algo.ReportStop)
	}
	return at, nil
}

// report: the report has a number for each column, and is all that a step puts out.
func (r rig) report() error {
	columns := r.model.Report()
	if _, err := stopColumn(columns); err != nil {
		return err
	}
	for _, world := range []int{1, 2} {
		g, _, err := r.model.Step(world, r.batch()/world)
		if err != nil {
			return err
		}
		want := graph.T(graph.F32, len(columns))
		if out := g.Outputs(); len(out) != 1 || out[0].Name != algo.OutputReport || g.Type(out[0].ID) != want {
			return fmt.Errorf("%d ranks: want one output, %s %v for the columns %q, got %v of %v", world, algo.OutputReport, want, algo.Names(columns), out, g.Type(out[0].ID))
		}
	}
	return nil
}

// inputsOf are the inputs that the live part of g takes.
func inputsOf(g *graph.Graph) map[string]graph.Type {
	in := map[string]graph.Type{}
	for i, live := range g.Live() {
		if leaf, ok := g.Nodes()[i].Op.(graph.Leaf); ok && live && leaf.Kind == graph.Input {
			in[leaf.Name] = leaf.Type
		}
	}
	return in
}

// own takes the shared inputs out of in, after checking their types.
func (r rig) own(in map[string]graph.Type, n int) error {
	for name, want := range map[string]graph.Type{
		algo.InputImages: graph.T(graph.F32, append([]int{n}, r.model.Takes().Shape.Slice()...)...),
		algo.InputKey:    graph.KeyType,
		algo.InputStop:   graph.T(graph.F32),
	} {
		if got, ok := in[name]; ok && got != want {
			return fmt.Errorf("the input %s is %v, want %v", name, got, want)
		}
		delete(in, name)
	}
	return ownSentences(in, n)
}

// inputs: a step reads the images and whether to stop, and Feeder fills whatever
// else it reads, as a pure function of the step that allocates nothing.
func (r rig) inputs() error { return r.withOwn(r.feeds) }

// withOwn calls f with a step's program and the inputs that are its own.
func (r rig) withOwn(f func(p exec.Program, own map[string]graph.Type) error) error {
	g, specs, err := r.model.Step(1, r.batch())
	if err != nil {
		return err
	}
	in := inputsOf(g)
	for _, name := range append(r.samplesRead(), algo.InputStop) {
		if _, ok := in[name]; !ok {
			return fmt.Errorf("the step does not read %s", name)
		}
	}
	if err := r.own(in, r.batch()); err != nil {
		return err
	}
	vars := ref.New().NewVars()
	if err := nn.Initialise(vars, specs, seed); err != nil {
		return err
	}
	return compiled(ref.New(), g, nil, exec.Options{Vars: vars}, func(p exec.Program) error { return f(p, in) })
}

// feeds checks the Feeder of a program with these inputs of its own.
func (r rig) feeds(p exec.Program, own map[string]graph.Type) error {
	feed := r.model.Feeder(p)
	before, err := fed(p, own, feed, 3, 1)
	if err != nil {
		return err
	}
	if err := clocksRun(p, own, feed); err != nil {
		return err
	}
	if _, err := fed(p, own, feed, 5, 2); err != nil {
		return err
	}
	if again, err := fed(p, own, feed, 3, 1); err != nil || !reflect.DeepEqual(again, before) {
		return errors.Join(err, fmt.Errorf("step 3 is fed %v, and after another step %v", before, again))
	}
	// A thread that the runtime starts meanwhile has a dozen objects: less than one a time.
	if n := testing.AllocsPerRun(50, func() { feed(4, 1) }); n > 0 {
		return fmt.Errorf("feeding a step allocates %v times", n)
	}
	return nil
}

// fed are the inputs of a program's own as feed fills them for a step of an epoch: all of
// them, whole.
func fed(p exec.Program, own map[string]graph.Type, feed func(int64, int), step int64, epoch int) (ddptest.Values, error) {
	for name, t := range own {
		fill(p, name, slices.Repeat([]float64{blank(t.DType)}, t.Shape.Len())...)
	}
	feed(step, epoch)
	all := ddptest.Values{}
	for name, t := range own {
		all[name] = ddptest.Numbers(p.Input(name))
		if slices.ContainsFunc(all[name], func(x float64) bool { return math.IsNaN(x) || !t.DType.IsFloat() && x == blank(t.DType) }) {
			return nil, fmt.Errorf("nobody fills all of the input %s: %v: it is none of those that all models share (package algo), and Feeder leaves it as it is", name, all[name])
		}
	}
	return all, nil
}

// blank is a number that no Feeder fills in.
func blank(t graph.DType) float64 {
	if t.IsFloat() {
		return math.NaN()
	}
	return math.MinInt32
}
