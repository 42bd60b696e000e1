// Package plan compiles a graph, for any device, into a Plan: steps in order,
// and where each value lies in memory.
//
//	graph ─ lower ─┬─ layout    images lie in channels-last order
//	               ├─ fold      what is known now is a number
//	               └─ cse       what is equal is computed once
//	          │
//	         dag     ops over dense row-major values with physical axes
//	          ├─ join           convolutions by the same weights are one (Options.Join)
//	          ├─ buckets        collectives reduce where their parts are made
//	          ├─ moments        mean and variance are one pass
//	          ├─ split          Σ(x + y) is Σx + Σy, if x is from earlier
//	          ├─ linear         sums that follow from other sums
//	          ├─ unshare        what these read is not reduced in place
//	          ├─ recompute      made again rather than kept
//	          └─ derive         made again rather than read
//	          │
//	         fuse    pointwise ops and their reductions become steps
//	          │
//	         schedule ─ rematerialise ─ assign      steps in order, variables
//	          │
//	     Plan │      the device sets Step.Scratch
//	          ▼
//	        memory   Allocate: offsets in the arena and in the buckets
//
// A pass is a function that changes the dag: it asks an analysis (who makes,
// reads and needs what; levels) and makes its changes at once by an edit. Each
// is shown before and after in testdata/passes.
//
// Images are the rank-4 values that touch convolutions, pools or upsampling.
// StopGrad and Reshape are aliases; conversions of layout appear at edges only.
// A fused step is of one iteration space, may store several results and end in
// reductions; broadcasts and constants are read in place. A collective starts
// as soon as its inputs exist and is waited for just before its first reader,
// when nothing else can run. A pointwise result takes the place of an operand
// that dies, and an assigned value is made in its variable when no read of the
// old value remains; otherwise a last step copies it. So is what is gathered: the
// collective runs in the variable's own memory.
//
// A Plan is a function of the graph and the Options alone, apart from the
// scratch sizes that the device fills in, so ranks agree on the order of
// collectives. Compiling takes time in proportion to the nodes, but for memory,
// where it grows with the number of values that live at the same time, and
// rematerialisation, which looks at all steps for each that it repeats.
//
// # What a device may wish
//
// What a device can and cannot do is an Option that lower reads, as WidenBF16 is;
// WeightsLast is another layout of weights, BF16Images another type of images in
// memory. What may run at the same time is what Deps says after Allocate, and Apart
// keeps small arrays, which share memory most, out of it. Chains groups small steps
// that one launch can do one after the other.
//
// Concurrency: New and Allocate are called by one goroutine; an allocated Plan
// is not changed any more.
package plan
