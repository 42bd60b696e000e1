//go:build !amd64 || noasm

package native

// tiles are the micro-kernels that this CPU can run, best first.
func tiles() []tile { return []tile{genericTile} }
