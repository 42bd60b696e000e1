//go:build cgo && !nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/linalg/dnnl"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

// bestEngine is the engine used when none is given.
func bestEngine(team *threads.Team) (engine.Engine, error) {
	e, err := dnnl.New(team.Size())
	if err != nil {
		return nil, err
	}
	return winograd.On(team, e), nil
}
