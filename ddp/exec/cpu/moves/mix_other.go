//go:build !amd64 || noasm

package moves

func mixFloat32(y []float32, from []source[float32], p pixels) { mix(y, from, p) }
