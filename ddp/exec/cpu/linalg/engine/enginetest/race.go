//go:build race

package enginetest

// Under the race detector a few small problems are enough: it cannot look into assembly
// or C, engines have few things that threads share, and those are alike for all shapes.
const (
	// Race says that the race detector is on: allocations, which it does not change,
	// are counted without it.
	Race = true

	shortFlops = 1e5
	shortEvery = 147
)
