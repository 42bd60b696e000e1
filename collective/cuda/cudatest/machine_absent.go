//go:build !cgo

package cudatest

import (
	"testing"
	"time"

	"ebtrain/collective/cuda"
)

const haveCgo = false

// Machine is what the double of libcuda simulates; without cgo there is none.
type Machine struct{ tb testing.TB }

func openMachine(string) (*Machine, error) { return nil, cuda.ErrNoCgo }

func (m *Machine) reset()                  {}
func (m *Machine) guards()                 {}
func (m *Machine) set(string, string) bool { return false }

// Fail, Slow, Wake, Calls, Live and Left: see the build with cgo.
func (m *Machine) Fail(string, int, int)           {}
func (m *Machine) Slow(string, int, time.Duration) {}
func (m *Machine) Wake()                           {}
func (m *Machine) Calls(string) int                { return 0 }
func (m *Machine) Live(string) int                 { return 0 }
func (m *Machine) Left() string                    { return "" }
