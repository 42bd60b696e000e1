// Package plan compiles a graph, for any device, into a Plan: steps in order,
// and where each value lies in memory.
//
// The passes, in order:
//
//   - layout: images (rank-4 values that touch convolutions, pools or
//     upsampling) lie in channels-last order (N, H, W, C); everything else is
//     row-major. After this pass a value is a dense row-major array of its
//     physical Dims, and the axes of every op are physical axes.
//   - lower: StopGrad and Reshape become aliases, constants stay numbers,
//     conversions of layout appear at edges only, AllReduce inputs are put
//     into contiguous buckets.
//   - merge, moments, split, linear: computations that are equal behind a
//     StopGrad become one, mean and variance one pass, and sums of linear
//     combinations become combinations of small sums.
//   - again, derive: cheap pointwise results are computed again where they are
//     read instead of being kept, or instead of being read.
//   - fuse: connected pointwise ops over one iteration space become one step,
//     which may store several results and end in reductions. Broadcasts and
//     constants are read in place and not materialised.
//   - schedule: a topological order in which an AllReduce starts as soon as
//     its inputs exist and is waited for just before its first reader, when
//     nothing else can run.
//   - memory: intermediate values get offsets in one arena by their
//     lifetimes; a pointwise result takes the place of an operand that dies;
//     an assigned value is made in its variable when no read of the old value
//     remains.
//
// A Plan is a function of the graph and the number of ranks alone, apart from
// the scratch sizes that the device fills in, so ranks agree on the order of
// collectives.
//
// Concurrency: New and Allocate are called by one goroutine; an allocated Plan
// is not changed any more.
package plan
