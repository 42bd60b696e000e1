// Package gorgoniaddp makes any gorgonia model data-parallel: every rank holds
// a replica of the model, runs it on its own part of the global batch, and
// averages the gradients with the other ranks before the solver steps.
//
//	err := gorgoniaddp.Build(func() error { ... })        // graph, Grad, machine
//	r, err := gorgoniaddp.New(ctx, comm, learnables, gorgoniaddp.Defaults())
//	for ... {
//		err = r.Step(ctx, vm, solver)                     // RunAll, average, Step, Reset
//		err = r.Mean(ctx, &loss)                          // over the ranks
//	}
//
// If every rank's cost is the mean over its part, and the parts are equally
// large, then a step of n ranks is the step of one rank on the whole batch, up
// to the rounding of the sums. State that a graph keeps for itself, such as
// the running statistics of gorgonia.BatchNorm, is not shared.
//
// # Limits
//
// First order only. gorgonia differentiates a graph once: a node that already
// has a derivative is skipped, so a second Grad on the same graph, or a Grad
// of a gradient, returns only a part of the sum, without an error. Grad of
// this package refuses it. Nodes are merged by a 32-bit hash and compiling is
// quadratic in the number of nodes. For these reasons gorgonia is not the
// engine of ebtrain, whose losses are differentiated two and three times (that
// is package graph); it is supported here for models that need neither.
//
// Tape machines only, with gorgonia.BindDualValues: a LispMachine makes no
// derivative nodes, and without dual values two learnables can share one
// gradient buffer. Values lie in host memory and are float32 or float64,
// contiguous and row-major. Gradients exist when RunAll returns, so the
// all-reduces overlap each other and the copying, but not the backward pass.
//
// # Invariants
//
//   - Before step 0 all ranks compare what they declare: the learnables in
//     order (name, type, shape) and the settings. A difference, or a problem
//     on any one rank, is the same error on every rank, and names the ranks.
//   - Replicas start equal and every rank applies the same averaged bits, so
//     they stay equal bit for bit; CheckReplicas proves it.
//   - A rank that cannot go on aborts the group, so that no rank waits for it.
//
// # Concurrency
//
// The methods of a Replica are called by one goroutine at a time, on every
// rank in the same order. Building two graphs at once races inside gorgonia:
// build within Build.
package gorgoniaddp
