//go:build !race

package exectest

// Race says that the race detector is on.
const Race = false
