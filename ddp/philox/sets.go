package philox

// A set is a set of instructions with which eight blocks are computed at a time. Draws have
// the bits of plain Go in each.
type set uint8

const (
	plain set = iota // none: Go, a block at a time
	avx2
	avx512
)
