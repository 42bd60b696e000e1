//go:build cgo

package cuda_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// machine is the double's, with nothing left at the end.
func machine(t *testing.T) *cudatest.Machine {
	t.Helper()
	m := cudatest.Use(t)
	t.Cleanup(m.Clean)
	return m
}

// device opens the first device, until the test ends.
func device(t *testing.T) *cuda.Device {
	t.Helper()
	d, err := cuda.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, d.Close()) })
	return d
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stream(t *testing.T, d *cuda.Device, name string) *cuda.Stream {
	t.Helper()
	s, err := d.NewStream(name, 0)
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

func alloc(t *testing.T, d *cuda.Device, n int64) cuda.Ptr {
	t.Helper()
	p, err := d.Alloc(n)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.Free(p)) })
	return p
}

func pinned(t *testing.T, d *cuda.Device, n int) *cuda.Pinned {
	t.Helper()
	p, err := d.AllocPinned(n)
	ok(t, err)
	t.Cleanup(func() { ok(t, p.Free()) })
	return p
}

func event(t *testing.T, d *cuda.Device, timed bool) *cuda.Event {
	t.Helper()
	e, err := d.NewEvent(timed)
	ok(t, err)
	t.Cleanup(func() { ok(t, e.Close()) })
	return e
}

// floats are pinned memory as numbers.
func floats(p *cuda.Pinned) []float32 {
	b := p.Bytes()
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// scaleSource is a kernel in the dialect: a[i] = factor·a[i] + 1.
const scaleSource = `
typedef struct { float *x; i64 n; double factor; } scale_args;
KERNEL(scale, 256, scale_args) {
	for (i64 i = (i64)BID * BDIM + TID; i < a.n; i += (i64)GDIM * BDIM)
		a.x[i] = (float)(a.factor * a.x[i]) + 1.0f;
}
`

// scaleArgs packs scale's argument.
func scaleArgs(x cuda.Ptr, n int, factor float64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(x))
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(factor))
}

func scale(t *testing.T, d *cuda.Device) cuda.Function {
	t.Helper()
	image, err := d.Compile("scale.cu", scaleSource, cuda.CompileOptions{Options: []string{"--fmad=false"}})
	ok(t, err)
	m, err := d.Load(image)
	ok(t, err)
	t.Cleanup(func() { ok(t, m.Close()) })
	f, err := m.Function("scale")
	ok(t, err)
	return f
}

func TestKernel(t *testing.T) {
	machine(t)
	d := device(t)
	s := stream(t, d, "compute")
	f := scale(t, d)
	const n = 1000
	x, host := alloc(t, d, 4*n), pinned(t, d, 4*n)
	for i := range floats(host) {
		floats(host)[i] = float32(i)
	}
	ok(t, s.CopyIn(x, host, 0, 4*n))
	ok(t, s.Launch(f, 3, 256, 0, scaleArgs(x, n, 2)))
	ok(t, s.CopyOut(host, 0, x, 4*n))
	ok(t, s.Sync(context.Background()))
	for i, v := range floats(host) {
		if v != 2*float32(i)+1 {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}
