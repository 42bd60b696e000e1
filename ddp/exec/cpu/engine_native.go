//go:build !cgo || nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/native"
	"ebtrain/ddp/exec/cpu/winograd"
)

// bestEngine is the engine used when none is given.
func bestEngine(threads int) (engine.Engine, error) {
	return winograd.Over(native.New(threads), threads), nil
}
