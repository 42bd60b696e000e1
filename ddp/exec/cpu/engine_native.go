//go:build !cgo || nodnnl

package cpu

import (
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

// bestEngine is the engine used when none is given.
func bestEngine(team *threads.Team) (engine.Engine, error) {
	return winograd.On(team, native.On(team)), nil
}
