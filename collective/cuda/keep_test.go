//go:build cgo

package cuda_test

import (
	"errors"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// TestKeep: a device that is kept can be used after Close, until the last one lets go of it.
func TestKeep(t *testing.T) {
	m := cudatest.Use(t)
	d, err := cuda.OpenDevice(0)
	ok(t, err)
	if d.Kept() {
		t.Error("a device is kept that was only opened")
	}
	one, other := d.Keep(), d.Keep()
	if !d.Kept() {
		t.Error("a device is not kept that is")
	}
	ok(t, one())
	ok(t, d.Close())
	ok(t, d.Close())
	ok(t, d.Attach(func() error { return nil }))
	if err := d.Do(func() error { return nil }); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("Do of a closed device: %v", err)
	}
	if n := m.Live("contexts"); n != 1 {
		t.Errorf("%d contexts are left of a device that is kept", n)
	}
	ok(t, other())
	if err := d.Attach(func() error { return nil }); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("Attach to a device that nobody keeps: %v", err)
	}
	m.Clean()
}
