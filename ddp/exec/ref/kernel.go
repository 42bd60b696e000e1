package ref

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// kernel computes the outputs of one node from its inputs. The elements of out
// are undefined before; they need not be rounded after.
type kernel func(in, out []*value) error

// kernelOf is the kernel of an op. Leaves and AllReduce are the program's.
func kernelOf(op graph.Op) (kernel, error) {
	switch op := op.(type) {
	case graph.Const:
		return constant(op), nil
	case graph.Iota:
		return iota(op), nil
	case graph.Draw:
		return draw(op), nil
	case graph.Unary:
		return unary(op), nil
	case graph.Binary:
		return either(binary[float64](op), binary[int64](op)), nil
	case graph.Select:
		return either(choose[float64], choose[int64]), nil
	case graph.Reduce:
		return either(reduce[float64](op), reduce[int64](op)), nil
	case graph.MatMul:
		return matmul(op), nil
	case graph.Conv2D:
		return conv2D(op), nil
	case graph.Conv2DGradX:
		return conv2DGradX(op), nil
	case graph.Conv2DGradW:
		return conv2DGradW(op), nil
	case graph.SumPool2D:
		return sumPool(op), nil
	case graph.SumUnpool2D:
		return sumUnpool(op), nil
	case graph.MaxPool2D:
		return maxPool(op), nil
	case graph.PlaneGather:
		return either(planeGather[float64], planeGather[int64]), nil
	case graph.PlaneScatter:
		return either(planeScatter[float64], planeScatter[int64]), nil
	case graph.Gather:
		return either(gather[float64], gather[int64]), nil
	case graph.ScatterAdd:
		return either(scatterAdd[float64], scatterAdd[int64]), nil
	case graph.Upsample2D:
		return upsample(op), nil
	case graph.Upsample2DT:
		return upsampleT(op), nil
	}
	return shapeKernelOf(op)
}

// shapeKernelOf is the kernel of an op that moves or converts elements.
func shapeKernelOf(op graph.Op) (kernel, error) {
	switch op := op.(type) {
	case graph.Reshape, graph.StopGrad:
		return same, nil
	case graph.Broadcast:
		return broadcast, nil
	case graph.Transpose:
		return transpose(op), nil
	case graph.Slice:
		return slice(op), nil
	case graph.Pad:
		return pad(op), nil
	case graph.Concat:
		return concat(op), nil
	case graph.Cast:
		return cast, nil
	}
	return nil, fmt.Errorf("the reference backend has no kernel for %T", op)
}

// either runs f on floating-point values and i on integers; the first input decides.
func either(f, i kernel) kernel {
	return func(in, out []*value) error {
		if in[0].typ.DType.IsFloat() {
			return f(in, out)
		}
		return i(in, out)
	}
}
