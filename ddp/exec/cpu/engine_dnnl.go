//go:build cgo && !nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/dnnl"
	"ebtrain/ddp/exec/cpu/engine"
)

// bestEngine is the engine used when none is given.
func bestEngine(threads int) (engine.Engine, error) { return dnnl.New(threads) }
