//go:build !race

package enginetest

const (
	// race says that the race detector is on.
	race = false
	// shortFlops is the most work of a case with -short: the loops in float64 take
	// long.
	shortFlops = 1.5e6
	// shortEvery says that -short has one small geometry in so many.
	shortEvery = 21
)
