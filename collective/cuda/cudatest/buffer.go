package cudatest

import (
	"context"
	"errors"
	"sync"
	"unsafe"

	"ebtrain/collective/cuda"
)

// Memory makes buffers of a device's memory that tests can write and read, as
// the suite of collectives wants them. Its methods may be called from any
// goroutine.
type Memory struct {
	dev    *cuda.Device
	stream *cuda.Stream

	mu  sync.Mutex
	own []cuda.Ptr
}

// NewMemory copies on a stream of its own.
func NewMemory(dev *cuda.Device) (*Memory, error) {
	s, err := dev.NewStream("buffers", 0)
	return &Memory{dev: dev, stream: s}, err
}

// Alloc makes a buffer of n bytes, which is there until Close.
func (m *Memory) Alloc(n int) (*Buffer, error) {
	p, err := m.dev.Alloc(int64(n))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own = append(m.own, p)
	return &Buffer{m, p}, err
}

// At is memory of somebody else's as a buffer.
func (m *Memory) At(p cuda.Ptr) *Buffer { return &Buffer{m, p} }

// Close frees the buffers.
func (m *Memory) Close() error {
	errs := []error{m.stream.Close()}
	for _, p := range m.own {
		errs = append(errs, m.dev.Free(p))
	}
	return errors.Join(errs...)
}

// Buffer is device memory. Where it cannot be copied, the test ends.
type Buffer struct {
	of *Memory
	at cuda.Ptr
}

// Ptr is where it lies, as package collective wants it.
func (b *Buffer) Ptr() unsafe.Pointer { return b.at.Vec(1).Ptr }

// Write writes to the buffer's beginning.
func (b *Buffer) Write(p []byte) {
	b.staged(len(p), func(s *cuda.Pinned) error {
		copy(s.Bytes(), p)
		return b.of.stream.CopyIn(b.at, s, 0, len(p))
	}, func(*cuda.Pinned) {})
}

// Read reads from the buffer's beginning.
func (b *Buffer) Read(p []byte) {
	b.staged(len(p), func(s *cuda.Pinned) error { return b.of.stream.CopyOut(s, 0, b.at, len(p)) },
		func(s *cuda.Pinned) { copy(p, s.Bytes()) })
}

func (b *Buffer) staged(n int, start func(*cuda.Pinned) error, then func(*cuda.Pinned)) {
	if n == 0 {
		return
	}
	s, err := b.of.dev.AllocPinned(n)
	if err == nil {
		err = errors.Join(start(s), b.of.stream.Sync(context.Background()))
		then(s)
		err = errors.Join(err, s.Free())
	}
	if err != nil {
		panic(err)
	}
}
