// Package rendezvous is how the processes of a job find each other, agree on
// who is who, and learn of each other's end.
//
// There is one launcher per node, and each starts the workers (ranks) of its
// node. The launcher of node 0 also holds the Coordinator, which alone decides
// the epoch, the ranks, who is dead, and whether the group is formed again:
//
//	launcher            coordinator
//	register ────────────▶           until all expected nodes are there
//	         ◀──────────── assign    who is which node, in this epoch
//	ack      ────────────▶           from every node
//	         ◀──────────── commit    workers are started
//	exchange ────────────▶           the workers' small blobs, gathered
//	         ◀──────────── gathered
//	fail     ────────────▶           a rank died, or raised an abort
//	         ◀──────────── abort     first cause wins; every rank is told
//	done     ────────────▶           all ranks of the node have ended well
//	         ◀──────────── end
//
// What ranks did last (flown) comes to the coordinator when somebody asks, and at
// each failure. In an elastic job (elastic.go) a launcher that is not needed yet is
// told to wait, and ranks are told to regroup, that is to stop, when it is; those that
// then do not stop in time, or cannot, are ended, and all are started again.
//
// Coordinator and Node are pure: events go in, effects come out; they have no
// clock, no socket and no goroutine. Package supervise runs them.
// Invariants:
//   - Every message carries the epoch; a message of another epoch is dropped.
//   - Every message may arrive twice; the second has no effect.
//   - The first cause of an abort is kept, except that a death by signal
//     within the settling time replaces a cause that was only reported: the
//     dead process is the reason, its peers merely noticed.
//
// Join is the worker's side: it returns a Group, which reaches the launcher
// over an inherited socket. A Group's methods may be called from any
// goroutine, but all ranks must call Exchange and Barrier in the same order.
package rendezvous
