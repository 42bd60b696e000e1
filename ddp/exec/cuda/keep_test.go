//go:build cgo

package cuda

import (
	"errors"
	"testing"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// endless is a Comm whose library has not ended when Close gives up.
type endless struct {
	collective.Comm
	dev  *driver.Device
	done func() error
}

func (e *endless) Close() error {
	e.done = e.dev.Keep()
	return nil
}

// TestCloseBesideNCCL: a backend whose Comm is still ending frees nothing, since that would
// wait for the device, and leaves it its context.
func TestCloseBesideNCCL(t *testing.T) {
	m := cudatest.Use(t)
	b, err := New(Config{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	comm := &endless{dev: b.dev}
	b.reduced = append(b.reduced, comm)
	if err := b.NewVars().Set("w", exec.NewTensor(graph.T(graph.F32, 8))); err != nil {
		t.Fatal(err)
	}
	freed := m.Calls("cuMemFree_v2") + m.Calls("cuMemFreeHost")
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := m.Calls("cuMemFree_v2") + m.Calls("cuMemFreeHost"); n != freed {
		t.Errorf("%d pieces of memory were freed", n-freed)
	}
	if m.Live("contexts") != 1 {
		t.Error("the context is gone")
	}
	if err := errors.Join(b.freeAll(), comm.done()); err != nil {
		t.Error(err)
	}
	m.Clean()
}
