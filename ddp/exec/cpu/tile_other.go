//go:build !amd64 || noasm

package cpu

const hasTiles = false

var tileHandlers [numTileFn]uintptr

func tileRun(*tileOp, *[4]uintptr, int) { panic("cpu: no tile machine in this build") }
