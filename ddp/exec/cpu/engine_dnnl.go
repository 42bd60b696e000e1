//go:build cgo && !nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/dnnl"
	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/winograd"
)

// bestEngine is the engine used when none is given.
func bestEngine(threads int) (engine.Engine, error) {
	e, err := dnnl.New(threads)
	if err != nil {
		return nil, err
	}
	return winograd.Over(e, threads), nil
}
