package nccl

import (
	_ "embed"
	"encoding/binary"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

//go:embed kernels.cu
var source string

// kernels are those of kernels.cu, loaded on a device.
type kernels struct {
	module       *cuda.Module
	divide, tree map[collective.DType]cuda.Function
}

func loadKernels(d *cuda.Device) (*kernels, error) {
	image, err := d.Compile("collective/nccl/kernels.cu", source, cuda.CompileOptions{})
	if err != nil {
		return nil, err
	}
	m, err := d.Load(image)
	if err != nil {
		return nil, err
	}
	k := &kernels{module: m, divide: map[collective.DType]cuda.Function{}, tree: map[collective.DType]cuda.Function{}}
	for _, t := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
		if k.divide[t], err = m.Function(fmt.Sprintf("divide_%s", t)); err != nil {
			return k, err
		}
		if k.tree[t], err = m.Function(fmt.Sprintf("tree_%s", t)); err != nil {
			return k, err
		}
	}
	return k, nil
}

func (k *kernels) close() error {
	if k == nil {
		return nil
	}
	return k.module.Close()
}

// arguments are those of kernels.cu.
type arguments struct {
	dst, own, parts cuda.Ptr
	n, stride       int
	ranks, rank     int
	div             int
}

func (a arguments) pack() []byte {
	b := make([]byte, 0, 56)
	for _, x := range []uint64{uint64(a.dst), uint64(a.own), uint64(a.parts), uint64(a.n), uint64(a.stride)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	for _, x := range []int{a.ranks, a.rank, a.div, 0} {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// launch has each thread do an element, up to some waves of the device.
func launch(s *cuda.Stream, f cuda.Function, a arguments) error {
	if a.n == 0 {
		return nil
	}
	const block = 256
	grid := min((a.n+block-1)/block, 8*max(1, s.Device().Info().SMs))
	return s.Launch(f, grid, block, 0, a.pack())
}
