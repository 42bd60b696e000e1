package gorgoniaddp

import (
	"errors"
	"fmt"
	"sync"

	"gorgonia.org/gorgonia"
)

// ErrSecondGrad means that a graph was to be differentiated a second time.
var ErrSecondGrad = errors.New("gorgoniaddp: graph already differentiated")

// buildMu guards gorgonia's package-level constants. They belong to the
// process, so the lock does too.
var buildMu sync.Mutex

// Build calls build while no other Build runs, and returns its error.
//
// gorgonia's graphs share package-level constants that building writes to, so
// two goroutines that build graphs at once race. Everything that makes nodes
// or compiles them belongs inside: NewGraph, operations, Grad,
// NewTapeMachine. Running a machine needs no lock. Builds do not nest.
func Build(build func() error) error {
	buildMu.Lock()
	defer buildMu.Unlock()
	return build()
}

// Grad is gorgonia.Grad, once for each graph: it adds the derivatives of the
// scalar cost with respect to wrt to cost's graph and returns them in order.
// Call it within Build.
//
// If any node of the graph has a derivative already, Grad returns an error
// that wraps ErrSecondGrad and leaves the graph as it is: gorgonia would skip
// those nodes, and the gradients would be silently wrong.
func Grad(cost *gorgonia.Node, wrt ...*gorgonia.Node) (gorgonia.Nodes, error) {
	if cost == nil || cost.Graph() == nil {
		return nil, errors.New("gorgoniaddp: Grad: the cost is not a node of a graph")
	}
	for _, n := range cost.Graph().AllNodes() {
		if n.Deriv() != nil {
			return nil, fmt.Errorf("%w: node %q has a derivative, which gorgonia would skip in a second Grad, "+
				"giving silently wrong gradients; differentiate the sum of the costs once, or build a graph for each cost",
				ErrSecondGrad, n.Name())
		}
	}
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		return nil, fmt.Errorf("gorgoniaddp: Grad of %q: %w", cost.Name(), err)
	}
	return grads, nil
}
