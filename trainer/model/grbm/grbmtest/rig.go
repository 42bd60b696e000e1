// Package grbmtest is what tests of methods that train a Gaussian RBM share: a
// rig that runs training steps on ranks in one process, in float64 if that is
// asked for, the checkerboard, and the exact log-likelihood.
//
// A Rig belongs to one goroutine.
package grbmtest

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Seed names the draws and the initial weights of a rig.
const Seed = 7

// Rig runs steps of a method.
type Rig struct {
	Backend exec.Backend
	DType   graph.DType
	// Build builds the step of a rank into c, as algo.Model.Step does.
	Build  func(c *nn.Context, batch int)
	Feeder func(exec.Program) func(step int64, epoch int)
	// Data are the pictures of a step's global batch, one after the other.
	Data  func(step int) []float64
	Batch int // over all ranks
}

// Start are the variables of each of so many ranks before the first step.
func (r Rig) Start(world int) ([]exec.Vars, error) {
	sets := make([]exec.Vars, world)
	for i := range sets {
		c, _, err := r.graph(world)
		if err != nil {
			return nil, err
		}
		sets[i] = r.Backend.NewVars()
		if err := nn.Initialise(sets[i], c.Variables(), Seed); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

func (r Rig) graph(world int) (*nn.Context, *graph.Graph, error) {
	c := nn.NewContext(nn.Train, world)
	c.DType = r.DType
	r.Build(c, r.Batch/world)
	g, err := c.Commit()
	return c, g, err
}

// Run takes the steps from … to−1 on as many ranks as there are sets of
// variables, and returns their reports, after checking that all ranks have the
// same.
func (r Rig) Run(ctx context.Context, sets []exec.Vars, from, to int) ([][]float64, error) {
	world := len(sets)
	all := make([][][]float64, world)
	err := ddptest.Each(world, func(rank int, comm collective.Comm) (err error) {
		if world == 1 {
			comm = nil
		}
		all[rank], err = r.rank(ctx, sets[rank], comm, world, rank, from, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	for rank := range all {
		for i, report := range all[rank] {
			if err := ddptest.Near(report, all[0][i], 0); err != nil {
				return nil, fmt.Errorf("step %d: the report of rank %d is not that of rank 0: %w", from+i, rank, err)
			}
		}
	}
	return all[0], nil
}

func (r Rig) rank(ctx context.Context, vars exec.Vars, comm collective.Comm, world, rank, from, to int) (reports [][]float64, err error) {
	_, g, err := r.graph(world)
	if err != nil {
		return nil, err
	}
	p, err := r.Backend.Compile(g, exec.Options{Name: "step", Vars: vars, Comm: comm})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	feed := r.Feeder(p)
	for step := from; step < to; step++ {
		if err := r.step(ctx, p, feed, step, world, rank); err != nil {
			return nil, err
		}
		reports = append(reports, ddptest.Numbers(p.Output(algo.OutputReport)))
	}
	return reports, nil
}

// step runs a compiled step of one rank.
func (r Rig) step(ctx context.Context, p exec.Program, feed func(int64, int), step, world, rank int) error {
	data := r.Data(step)
	share := len(data) / world
	set(p, algo.InputImages, data[rank*share:(rank+1)*share]...)
	set(p, algo.InputKey, Seed, float64(step), float64(rank*r.Batch/world))
	feed(int64(step), 0)
	return exec.Run(ctx, p)
}

// set fills an input, if the program has it.
func set(p exec.Program, name string, x ...float64) {
	in := p.Input(name)
	for i := range x {
		if in != nil {
			in.SetAt(i, x[i])
		}
	}
}
