package gorgoniaddp

import (
	"context"
	"fmt"

	"gorgonia.org/gorgonia"

	"ebtrain/collective"
)

// A Replica is one rank's copy of a model.
type Replica struct {
	comm    collective.Comm
	nodes   gorgonia.Nodes
	model   []gorgonia.ValueGrad
	mems    []collective.Vec // type and length of each learnable, as declared
	buckets []bucket
}

// New makes the model whose learnables are nodes data-parallel over comm. It
// compares the ranks' declarations, then makes the initial values equal (or
// verifies that they are). Every rank calls it with the same nodes, in the
// same order, each with a value and, from Grad, a derivative. New takes
// bucket memory from comm, about as much as the learnables', until comm closes.
//
// A difference between ranks is an error that wraps collective.ErrMismatch.
// All ranks return the same error, and comm can still be used.
func New(ctx context.Context, comm collective.Comm, nodes gorgonia.Nodes, cfg Config) (*Replica, error) {
	mine, mems := describe(nodes, cfg)
	if err := compare(ctx, comm, mine); err != nil {
		return nil, err
	}
	r := &Replica{
		comm:    comm,
		nodes:   nodes,
		model:   gorgonia.NodesToValueGrads(nodes),
		mems:    mems,
		buckets: plan(mems, cfg.BucketBytes),
	}
	for i := range r.buckets {
		v := &r.buckets[i].vec
		mem, err := comm.Alloc(v.Len * v.Type.Size())
		if err != nil {
			return nil, r.abort(fmt.Errorf("gorgoniaddp: bucket %d of %d: %w", i, len(r.buckets), err))
		}
		*v = mem.As(v.Type)
	}
	if err := r.agree(ctx, cfg.VerifyInit); err != nil {
		return nil, err
	}
	return r, nil
}

// agree makes the initial values equal, or verifies that they are.
func (r *Replica) agree(ctx context.Context, verify bool) error {
	if verify {
		return r.CheckReplicas(ctx)
	}
	return r.exchange(ctx, collective.Request{Kind: collective.Broadcast, Root: 0, Label: "initial values"}, r.mems)
}

// Step is one training step: run vm, average the gradients, step the solver,
// reset vm. Any error aborts the group. A Solver uses the gradients as scratch
// memory and leaves them zero; gorgonia adds to them in the next run.
// gorgonia.AdamW is refused: it steps a copy of the weights (v0.9.18).
func (r *Replica) Step(ctx context.Context, vm gorgonia.VM, solver gorgonia.Solver) error {
	if _, ok := solver.(*gorgonia.AdamW); ok {
		return r.abort(fmt.Errorf("gorgoniaddp: solver: gorgonia's AdamW never changes the weights; use NewAdamSolver, with WithL2Reg for decay"))
	}
	if err := vm.RunAll(); err != nil {
		return r.abort(fmt.Errorf("gorgoniaddp: run: %w", err))
	}
	if err := r.Average(ctx); err != nil {
		return err
	}
	if err := solver.Step(r.model); err != nil {
		return r.abort(fmt.Errorf("gorgoniaddp: solver: %w", err))
	}
	vm.Reset()
	return nil
}

// Average replaces every learnable's gradient, where it lies, by its mean over
// the ranks. Call it after RunAll and before the solver's Step. Since the mean
// is linear, gradients accumulated over several runs need it only once.
// After an error the group is aborted and the gradients are undefined.
func (r *Replica) Average(ctx context.Context) error {
	grads := make([]collective.Vec, len(r.nodes))
	for i := range r.nodes {
		g, err := r.gradient(i)
		if err != nil {
			return r.abort(fmt.Errorf("gorgoniaddp: gradient of %s: %w", nameOf(r.nodes, i), err))
		}
		grads[i] = g
	}
	return r.exchange(ctx, collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Label: "gradients"}, grads)
}

// gradient is the memory of the gradient of learnable i.
func (r *Replica) gradient(i int) (collective.Vec, error) {
	n := r.nodes[i]
	v, err := n.Grad()
	if err != nil {
		return collective.Vec{}, err
	}
	if v == nil {
		return collective.Vec{}, fmt.Errorf("not computed yet; call RunAll first")
	}
	if n.Deriv() != nil && v == n.Deriv().Value() {
		return collective.Vec{}, fmt.Errorf("lies in the machine's own memory, which other nodes may share; " +
			"make the machine with gorgonia.BindDualValues for every learnable")
	}
	return r.declared(i, v)
}

// declared is the memory of v, which must be as learnable i was declared.
func (r *Replica) declared(i int, v gorgonia.Value) (collective.Vec, error) {
	m, err := memoryOf(v)
	if err == nil && (m.Type != r.mems[i].Type || m.Len != r.mems[i].Len) {
		err = fmt.Errorf("want %d elements of %v as declared, got %d of %v", r.mems[i].Len, r.mems[i].Type, m.Len, m.Type)
	}
	return m, err
}

// Mean replaces each x by its mean over the ranks: losses, accuracies. Every
// rank gets the same bits and gives the same number of values.
func (r *Replica) Mean(ctx context.Context, xs ...*float64) error {
	buf := make([]float64, len(xs))
	for i, x := range xs {
		buf[i] = *x
	}
	req := collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Vec: collective.VecOf(buf), Label: "scalars"}
	if err := collective.Do(ctx, r.comm, req); err != nil {
		return fmt.Errorf("gorgoniaddp: mean of %d scalars: %w", len(xs), err)
	}
	for i, x := range xs {
		*x = buf[i]
	}
	return nil
}

// CheckReplicas proves that the learnables are bit for bit equal on all ranks.
// If not, all ranks return the same error, which wraps collective.ErrMismatch
// and names the ranks that differ from rank 0 and the first such node. It
// reads all weights once, and sends 8 bytes for each learnable.
func (r *Replica) CheckReplicas(ctx context.Context) error {
	rank, size, k := r.comm.Rank(), r.comm.Size(), len(r.nodes)
	sums := make([]int64, size*k) // (rank, node)
	for i, n := range r.nodes {
		m, err := r.declared(i, n.Value())
		if err != nil {
			return r.abort(fmt.Errorf("gorgoniaddp: value of %s: %w", nameOf(r.nodes, i), err))
		}
		sums[rank*k+i] = digest(m)
	}
	req := collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(sums), Label: "replica check"}
	if err := collective.Do(ctx, r.comm, req); err != nil {
		return fmt.Errorf("gorgoniaddp: replica check: %w", err)
	}
	first, ranks := k, []int(nil)
	for s := 1; s < size; s++ {
		for i := range k {
			if sums[s*k+i] != sums[i] {
				first, ranks = min(first, i), append(ranks, s)
				break
			}
		}
	}
	if ranks == nil {
		return nil
	}
	return fmt.Errorf("gorgoniaddp: replicas differ: ranks %v are not equal to rank 0, first at %s: %w",
		ranks, nameOf(r.nodes, first), collective.ErrMismatch)
}

// abort ends the group because this rank cannot go on, and returns cause.
func (r *Replica) abort(cause error) error {
	r.comm.Abort(fmt.Errorf("rank %d: %w", r.comm.Rank(), cause))
	return cause
}
