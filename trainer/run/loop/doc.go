// Package loop is the training loop: batches in, steps run, numbers reported,
// checkpoints written, all ranks in step.
//
// Every decision that all ranks must share is made from numbers that all ranks
// have: whether to stop is an entry of the step's own averaged report, and so
// is whether a loss is still finite. So no rank ever waits for one that has
// left. Where steps are queued, stopping is agreed by an all-reduce of its own. Files
// are written by rank 0, and checkpoints also by one rank of each host that does not
// see rank 0's folder; the others wait at the next collective.
//
// A run that is interrupted and resumed computes what the uninterrupted run
// would have: all randomness is named by the step, and a checkpoint holds all
// else. The exception are variables of role nn.Scratch, which are each rank's
// own: they are not compared between ranks, not saved, and begin anew. With a sharded
// optimiser a rank holds parts of moments and, between steps, of weights (shared.go);
// checkpoints hold all of them.
//
// Concurrency: a Trainer is used by one goroutine.
package loop
