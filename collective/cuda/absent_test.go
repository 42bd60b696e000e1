//go:build !cgo

package cuda_test

import (
	"errors"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// TestAbsent: without cgo everything says so.
func TestAbsent(t *testing.T) {
	for _, f := range []cuda.Family{cuda.Driver, cuda.NVRTC, cuda.CublasLt, cuda.CuDNN, cuda.NCCL} {
		if l, err := cuda.Open(f); l != nil || !errors.Is(err, cuda.ErrNoCgo) {
			t.Errorf("%s: %v, %v", f, l, err)
		}
	}
	if _, err := cuda.DriverVersion(); !errors.Is(err, cuda.ErrNoCgo) || errors.Is(err, cuda.ErrNoDriver) {
		t.Errorf("DriverVersion: %v", err)
	}
	if _, err := cuda.Devices(); !errors.Is(err, cuda.ErrNoCgo) {
		t.Errorf("Devices: %v", err)
	}
	if d, err := cuda.OpenDevice(0); d != nil || !errors.Is(err, cuda.ErrNoCgo) {
		t.Errorf("OpenDevice: %v", err)
	}
}

func TestDoublesAreSkipped(t *testing.T) {
	cudatest.Use(t)
	t.Error("there is a machine without cgo")
}
