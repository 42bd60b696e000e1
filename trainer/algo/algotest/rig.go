package algotest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ebtrain/collective"
	"ebtrain/data/loader"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

const (
	seed   = 7
	shards = 8  // virtual ones
	few    = 4  // groups of samples over all ranks in float64, which is slow
	nobody = -1 // no rank
)

// rig takes steps of a model.
type rig struct {
	ctx   context.Context
	model algo.Model
	asks  int // the rank that asks to stop, or nobody
	on    func() (exec.Backend, error)
}

// batch is the samples of a step over all ranks, in float32: of each virtual shard
// what the model sees together. fewer is that in float64.
func (r rig) batch() int { return shards * algo.GroupOf(r.model) }
func (r rig) fewer() int { return few * algo.GroupOf(r.model) }

func newRig(ctx context.Context, m algo.Model) rig { return rig{ctx, m, nobody, reference} }

// reference is a backend that computes each node as it stands.
func reference() (exec.Backend, error) { return ref.New(), nil }

// oneThread is the cpu's, which plans.
func oneThread() (exec.Backend, error) { return cpu.New(cpu.Config{Threads: 1}) }

// images are n samples of a step, as the model takes them.
func (r rig) images(step, n int) []float64 {
	in := r.model.Takes()
	x := ddptest.Noise(uint32(step+1), n*in.Shape.Len())
	for i := range x {
		x[i] = 0.95 * math.Sin(3*x[i])
		if in.Range == loader.Unit {
			x[i] = (1 + x[i]) / 2
		}
	}
	return x
}

// place is a rank among others, and the samples of all.
type place struct{ rank, world, batch int }

// steps runs the steps from … to−1 of a compiled program and returns their
// reports.
func (r rig) steps(p exec.Program, at place, from, to int) (reports [][]float64, err error) {
	feed := r.model.Feeder(p)
	for step := from; step < to; step++ {
		r.show(p, step, at)
		fill(p, algo.InputKey, seed, float64(step), float64(at.rank*at.batch/at.world))
		stop := 0.0
		if at.rank == r.asks {
			stop = 1
		}
		fill(p, algo.InputStop, stop)
		feed(int64(step), 0)
		if err := exec.Run(r.ctx, p); err != nil {
			return nil, err
		}
		reports = append(reports, ddptest.Numbers(p.Output(algo.OutputReport)))
	}
	return reports, nil
}

// fill sets an input, where the program, or a stage before it, has it.
func fill(p exec.Program, name string, x ...float64) {
	if s, ok := p.(staged); ok {
		for _, one := range s.before {
			fill(one.Program, name, x...)
		}
	}
	if in := p.Input(name); in != nil {
		for i := range x {
			in.SetAt(i, x[i])
		}
	}
}

// compiled calls f with a program, which it then closes. Each run of it begins with the
// stages.
func compiled(b exec.Backend, g *graph.Graph, stages []chain.Stage, o exec.Options, f func(exec.Program) error) (err error) {
	o.Name = "step"
	p, err := b.Compile(g, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if len(stages) == 0 {
		return f(p)
	}
	all := staged{Program: p}
	for _, s := range stages {
		o.Name = s.Name
		one, err := b.Compile(s.Graph, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, one.Close()) }()
		all.before = append(all.before, stage{one, s.Times})
	}
	return f(all)
}

// staged is a program with stages before it.
type staged struct {
	exec.Program
	before []stage
}

// stage is a program that runs several times.
type stage struct {
	exec.Program
	times int
}

// Launch runs the stages first.
func (s staged) Launch(ctx context.Context) error {
	for _, one := range s.before {
		for range one.times {
			if err := exec.Run(ctx, one.Program); err != nil {
				return err
			}
		}
	}
	return s.Program.Launch(ctx)
}

// stages are those before a step of the model, changed.
func (r rig) stages(world, batch int, change func(*graph.Graph) (*graph.Graph, error)) ([]chain.Stage, error) {
	all, err := algo.StagesOf(r.model, 0, world, batch)
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		if all[i].Graph, err = change(s.Graph); err != nil {
			return nil, fmt.Errorf("stage %s: %w", s.Name, err)
		}
	}
	return all, nil
}

// asIs changes nothing.
func asIs(g *graph.Graph) (*graph.Graph, error) { return g, nil }

// train takes the steps from … to−1 in float64 on as many ranks as there are sets
// of variables, each of which is completed with what it lacks. It returns the
// reports, which have to be the same on all ranks.
func (r rig) train(sets []exec.Vars, from, to int) ([][]float64, error) {
	world := len(sets)
	g, specs, err := r.model.Step(world, r.fewer()/world)
	if err != nil {
		return nil, err
	}
	if g, err = widen(g); err != nil {
		return nil, err
	}
	stages, err := r.stages(world, r.fewer()/world, widen)
	if err != nil {
		return nil, err
	}
	all := make([][][]float64, world)
	err = ddptest.Each(world, func(rank int, comm collective.Comm) (err error) {
		if world == 1 {
			comm = nil
		}
		if err := nn.Initialise(sets[rank], widened(specs), seed); err != nil {
			return err
		}
		b, err := r.on()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		return compiled(b, g, stages, exec.Options{Vars: sets[rank], Comm: comm}, func(p exec.Program) (err error) {
			all[rank], err = r.steps(p, place{rank, world, r.fewer()}, from, to)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for rank := range all {
		for i := range all[rank] {
			if !slices.Equal(all[rank][i], all[0][i]) {
				return nil, fmt.Errorf("step %d: rank %d of %d reports %v, rank 0 %v", from+i, rank, world, all[rank][i], all[0][i])
			}
		}
	}
	return all[0], nil
}

// newSets are empty sets of variables, one for each rank.
func newSets(world int) []exec.Vars {
	sets := make([]exec.Vars, world)
	for i := range sets {
		sets[i] = ref.New().NewVars()
	}
	return sets
}

// replicated are the names of the variables that all ranks have alike.
func (r rig) replicated() ([]string, error) {
	_, specs, err := r.model.Step(1, r.batch())
	var names []string
	for _, v := range nn.Replicated(specs) {
		names = append(names, v.Name)
	}
	return names, err
}

// near compares the reports and replicated variables of two runs.
func (r rig) near(got, want [][]float64, vars, wantVars exec.Vars, tolerance float64) error {
	names, err := r.replicated()
	if err != nil {
		return err
	}
	for i := range want {
		if err := ddptest.Near(got[i], want[i], tolerance); err != nil {
			return fmt.Errorf("report %d of %d, of %v: %w", i, len(want), algo.Names(r.model.Report()), err)
		}
	}
	for _, name := range names {
		a, err := vars.Get(name)
		if err != nil {
			return err
		}
		b, err := wantVars.Get(name)
		if err != nil {
			return err
		}
		if err := ddptest.Near(ddptest.Numbers(a), ddptest.Numbers(b), tolerance); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
