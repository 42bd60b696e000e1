//go:build !cgo

package nccl

import "ebtrain/collective/cuda"

// bind has nothing to bind: cuda.Open has said so before.
func bind(*cuda.Library) (api, error) { return nil, cuda.ErrNoCgo }
