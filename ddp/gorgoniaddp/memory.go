package gorgoniaddp

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"ebtrain/collective"
)

// memoryOf is the memory of v, shared, not copied. v is a float32 or float64
// scalar, or a contiguous row-major *tensor.Dense of one of these types.
func memoryOf(v gorgonia.Value) (collective.Vec, error) {
	switch v := v.(type) {
	case *gorgonia.F32:
		p := (*[1]float32)(v.Pointer())
		return collective.VecOf(p[:]), nil
	case *gorgonia.F64:
		p := (*[1]float64)(v.Pointer())
		return collective.VecOf(p[:]), nil
	case *tensor.Dense:
		return memoryOfDense(v)
	}
	return collective.Vec{}, fmt.Errorf("want a float32 or float64 scalar or *tensor.Dense, got %T", v)
}

func memoryOfDense(d *tensor.Dense) (collective.Vec, error) {
	if d.RequiresIterator() || d.DataOrder().IsColMajor() || !d.IsNativelyAccessible() {
		return collective.Vec{}, fmt.Errorf("want a contiguous row-major tensor in host memory, got one of shape %v with strides %v; make a Clone or Materialize it", d.Shape(), d.Strides())
	}
	switch d.Dtype() {
	case tensor.Float32:
		return collective.VecOf(d.Float32s()), nil
	case tensor.Float64:
		return collective.VecOf(d.Float64s()), nil
	}
	return collective.Vec{}, fmt.Errorf("want elements of type float32 or float64, got %v", d.Dtype())
}

// digest is 64 bits of the SHA-256 of v's memory.
func digest(v collective.Vec) int64 {
	sum := sha256.Sum256(v.Bytes())
	return int64(binary.LittleEndian.Uint64(sum[:]))
}
