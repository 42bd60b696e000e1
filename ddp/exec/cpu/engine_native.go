//go:build !cgo || nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/native"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/cpu/winograd"
)

// bestEngine is the engine used when none is given.
func bestEngine(team *threads.Team) (engine.Engine, error) {
	return winograd.On(team, native.On(team)), nil
}
