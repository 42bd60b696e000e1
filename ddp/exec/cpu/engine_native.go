//go:build !cgo || nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/native"
)

// bestEngine is the engine used when none is given.
func bestEngine(threads int) (engine.Engine, error) { return native.New(threads), nil }
