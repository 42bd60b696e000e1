package cpu

import (
	"errors"

	"ebtrain/ddp/exec/cpu/linalg/amx"
	"ebtrain/ddp/exec/cpu/linalg/dnnl"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

// bestEngine is the engine used when none is given: matrix instructions over Winograd's
// filtering, as far as the processor has them, over oneDNN, or over plain Go where there
// is no oneDNN. The notice says why there is none, unless this build is without.
func bestEngine(team *threads.Team) (e engine.Engine, notice string, err error) {
	e, err = dnnl.On(team)
	var unusable *dnnl.LibraryError
	switch {
	case errors.As(err, &unusable):
		e, notice = native.On(team), unusable.Error()
	case errors.Is(err, dnnl.ErrAbsent):
		e = native.On(team)
	case err != nil:
		return nil, "", err
	default:
		e = native.Ahead(team, e)
	}
	return amx.On(team, winograd.On(team, e)), notice, nil
}
