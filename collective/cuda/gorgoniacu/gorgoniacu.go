//go:build gorgoniacu

// Package gorgoniacu lets programs of gorgonia.org/cu use the collectives of this
// module: a Vec of a cu.DevicePtr, and a collective in the order of a cu.Stream.
//
// It is built under the tag gorgoniacu alone, with CUDA's headers up to version 12 and
// libcuda to link with: importing gorgonia.org/cu ends the process where there is no
// GPU. cu's contexts are not the device's primary one, in which NCCL and this module
// work, so memory and streams must be of that: make it current on the goroutine's
// thread (cuda.Device.Attach) and call cu's functions there, rather than cu.NewContext.
//
//	dev, err := cuda.OpenDevice(0)
//	comm, err := nccl.New(ctx, host, dev, nccl.Options{})
//	dev.Attach(func() error {
//		p, err := cu.MemAlloc(4 * n)
//		s, err := cu.MakeStream(cu.NonBlocking)
//		req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: gorgoniacu.Vec(p, collective.F32, n)}
//		err = comm.Agree(ctx, []collective.Request{req})
//		err = gorgoniacu.Enqueue(comm, dev, s, req)
//	})
//
// Concurrency: as of the Comm.
package gorgoniacu

import (
	"unsafe"

	"gorgonia.org/cu"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// Enqueuer is a Comm whose collectives can follow what is queued on a stream: that of
// package nccl, or staged.
type Enqueuer interface {
	Enqueue(s *cuda.Stream, req collective.Request) error
}

// Vec is n elements at p, which must be a multiple of their size.
func Vec(p cu.DevicePtr, d collective.DType, n int) collective.Vec {
	return cuda.Ptr(p).Vec(n * d.Size()).As(d)
}

// Enqueue puts req behind what is queued on s, a stream of the device's primary context.
func Enqueue(c Enqueuer, d *cuda.Device, s cu.Stream, req collective.Request) error {
	return c.Enqueue(d.StreamOf("gorgonia.org/cu", uintptr(unsafe.Pointer(s.C()))), req)
}
