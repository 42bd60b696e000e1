//go:build race

package enginetest

// Under the race detector a few small problems are enough: it cannot look into assembly
// or C, engines have few things that threads share, and those are alike for all shapes.
const (
	race = true

	shortFlops = 1e5
	shortEvery = 147
)
