// Package pointwise runs fused groups: chains of pointwise ops over one iteration
// space, and the sums at their ends, in one pass over memory (plan.Fused).
//
// The points are cut into blocks of about a thousand, so that what a block has in
// hand stays in the first-level cache, and the blocks into parts for the threads.
// An operand is brought in, or used where it lies; all instructions are done on
// the block; results are stored, and each part adds up sums of its own:
//
//	points  ┌ part 0 ───────────────┬ part 1 ───────┬ …
//	blocks  ├ block ┬ block ┬ block ┼ block ┬ …
//	strips  ├─┬─┬─┬─┤ of 128 points, in registers of the processor
//	lane    │ load 0 │ load 1 │ … │ result 0 │ …   a buffer each, one lane a thread
//	sums    │ part 0 │ part 1 │ …                  in scratch, added in order
//
// A block is done instruction by instruction by the loops of package vec (float32,
// float64, int64; in assembly for float32: AVX2), or, where the group is float32 and
// the processor has AVX-512 or AVX2, strip by strip by package machine; both give the
// same bits but for the order of sums. Sums are float64, or int64.
//
// The same inputs and number of threads give the same bits.
//
// Concurrency: a Kernel runs once at a time, and shares its work among the threads
// of the Jobs that it was made with.
package pointwise
