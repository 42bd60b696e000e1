//go:build !cgo || nodnnl

// Package dnnl is the engine over oneDNN. This build has none: it was made
// without cgo or with the tag nodnnl.
package dnnl

import (
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// New always returns ErrAbsent.
func New(int) (engine.Engine, error) { return nil, ErrAbsent }

// On always returns ErrAbsent.
func On(*threads.Team) (engine.Engine, error) { return nil, ErrAbsent }
