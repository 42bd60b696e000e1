//go:build !amd64 || noasm

package winograd

// isas are the instruction sets that have transforms: none.
func isas() []isa { return nil }
