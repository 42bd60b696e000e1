//go:build !cgo || nodnnl

// Package dnnl is the engine over oneDNN. This build has none: it was made
// without cgo or with the tag nodnnl.
package dnnl

import (
	"errors"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// Available says whether this build has oneDNN.
const Available = false

// ErrAbsent is what New returns in this build.
var ErrAbsent = errors.New("dnnl: not built in (install libdnnl-dev and build with cgo, without -tags nodnnl)")

// New always returns ErrAbsent.
func New(int) (engine.Engine, error) { return nil, ErrAbsent }

// ShortSpins does nothing: there is no OpenMP.
func ShortSpins() {}
