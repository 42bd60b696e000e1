package colltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"ebtrain/collective"
)

// Buffer is memory that a Comm works on, on the host or on a device.
type Buffer interface {
	Ptr() unsafe.Pointer
	Write(b []byte) // to its beginning
	Read(b []byte)  // from its beginning
}

type plain struct{ mem []byte }

func (p plain) Ptr() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p.mem)) }
func (p plain) Write(b []byte)      { copy(p.mem, b) }
func (p plain) Read(b []byte)       { copy(b, p.mem) }

// hostBuffer is ordinary memory, aligned for every type.
func hostBuffer(n int) Buffer {
	words := make([]uint64, n/8+1)
	return plain{unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)}
}

// guard is the number of bytes on both sides of a vector that must not change.
const guard = 64

const guardByte = 0xA5

// vector is a Vec between guards in a Buffer.
type vector struct {
	buf Buffer
	vec collective.Vec
}

// vectorBytes is the size of the Buffer that a vector needs.
func vectorBytes(d collective.DType, n int) int { return n*d.Size() + 2*guard }

func newVector(b Buffer, d collective.DType, values []float64) vector {
	n := len(values)
	v := vector{b, collective.Vec{Type: d, Len: n, Ptr: unsafe.Add(b.Ptr(), guard)}}
	mem := bytes.Repeat([]byte{guardByte}, vectorBytes(d, n)) // loops take long under the race detector
	clear(mem[guard : guard+n*d.Size()])
	for i, x := range values {
		if x != 0 {
			put(d, mem[guard+i*d.Size():], x)
		}
	}
	b.Write(mem)
	return v
}

// bytes is the vector's memory, and an error if a guard was touched.
func (v vector) bytes() ([]byte, error) {
	n := v.vec.Len * v.vec.Type.Size()
	mem := make([]byte, n+2*guard)
	v.buf.Read(mem)
	for _, lo := range []int{0, guard + n} {
		for i, b := range mem[lo : lo+guard] {
			if b != guardByte {
				return nil, fmt.Errorf("byte %d, outside of the vector's %d, was written", lo+i-guard, n)
			}
		}
	}
	return mem[guard : guard+n], nil
}

func (v vector) values() ([]float64, error) {
	b, err := v.bytes()
	out := make([]float64, v.vec.Len)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i] = get(v.vec.Type, b[i*v.vec.Type.Size():])
	}
	return out, nil
}

// put writes x as an element of type d. For BF16, x must be exact or is cut.
func put(d collective.DType, b []byte, x float64) {
	switch d {
	case collective.F32:
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(x)))
	case collective.F64:
		binary.NativeEndian.PutUint64(b, math.Float64bits(x))
	case collective.BF16:
		binary.NativeEndian.PutUint16(b, uint16(math.Float32bits(float32(x))>>16))
	case collective.I32:
		binary.NativeEndian.PutUint32(b, uint32(int32(x)))
	case collective.I64:
		binary.NativeEndian.PutUint64(b, uint64(int64(x)))
	case collective.U8:
		b[0] = uint8(x)
	}
}

func get(d collective.DType, b []byte) float64 {
	switch d {
	case collective.F32:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	case collective.F64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	case collective.BF16:
		return float64(math.Float32frombits(uint32(binary.NativeEndian.Uint16(b)) << 16))
	case collective.I32:
		return float64(int32(binary.NativeEndian.Uint32(b)))
	case collective.I64:
		return float64(int64(binary.NativeEndian.Uint64(b)))
	}
	return float64(b[0])
}
