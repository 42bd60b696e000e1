//go:build !cgo

package cudnn

import (
	"encoding/json"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
)

// Library cannot be had without cgo.
type Library struct{}

// New always returns cuda.ErrNoCgo.
func New(*cuda.Device, int64) (*Library, error) { return nil, cuda.ErrNoCgo }

func (*Library) Name() string { return "" }

func (*Library) Prepare(linalg.Problem, int) ([]linalg.Candidate, error) { return nil, cuda.ErrNoCgo }

func (*Library) Restore(linalg.Problem, json.RawMessage) (linalg.Candidate, error) {
	return nil, cuda.ErrNoCgo
}

func (*Library) Survey(linalg.Conv, bool) (Survey, error) { return Survey{}, cuda.ErrNoCgo }

func (*Library) Listen(func(string)) {}

func (*Library) Close() error { return nil }
