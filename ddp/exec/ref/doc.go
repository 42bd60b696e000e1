// Package ref is the reference backend: plain Go loops, one node at a time, in
// the order of the graph. It is the truth that other backends are held to, so
// it is written to be read, and never made clever.
//
// Each op is computed in float64, from inputs already rounded to their types,
// and its result is rounded once to the type of the node. Integers are exact
// and wrap around.
//
// Every value of the live graph has memory of its own. Collectives run in the
// order of the graph, each waited for before the next node.
//
// # Concurrency
//
// As package exec says. A launched run is one goroutine.
package ref
