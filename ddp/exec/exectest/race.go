//go:build race

package exectest

// Race says that the race detector is on, which makes everything ten times slower: what
// one goroutine computes by itself is left to runs without it.
const Race = true
