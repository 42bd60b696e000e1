//go:build !amd64 || noasm

package machine

// Available says that there is no machine.
const Available = false

var handlers [numOpcodes]uintptr

func run(*linked, *[4]uintptr, int) { panic("machine: there is none in this build") }
