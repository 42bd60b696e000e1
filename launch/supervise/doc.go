// Package supervise starts the ranks of one node, carries their output, and
// sees to it that they end: it runs the state machines of package rendezvous.
//
// Invariants:
//   - Every rank leads its own process group; when it ends, what is left of
//     the group is killed and reaped. What has left it (setsid) is when the
//     last rank has ended.
//   - No rank outlives the launcher, whatever happens to the launcher: each
//     gets SIGKILL from the kernel when the thread that started it ends
//     (PDEATHSIG), and a guard process kills what is left of the groups, and
//     outside them.
//   - Output lines are written whole.
//
// All state belongs to the goroutine that runs Run; other goroutines post
// functions to it. Run waits for all of them.
package supervise
