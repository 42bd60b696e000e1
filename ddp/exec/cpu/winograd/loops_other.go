//go:build !amd64 || noasm

package winograd

// available says whether this CPU can run the loops.
func available() bool { return false }

var loops6, loops5 loops
