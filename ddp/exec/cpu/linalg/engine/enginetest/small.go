package enginetest

import (
	"fmt"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/graph"
)

// axis is the geometry of a convolution along one axis of its images.
type axis struct{ kernel, stride, before, after, dilation, extent int }

// axes are all small geometries along one axis: images smaller than the kernel
// and than the stride, strides beyond the kernel, windows that see nothing but
// padding, paddings of one side only.
func axes() (list []axis) {
	for kernel := 1; kernel <= 5; kernel++ {
		for stride := 1; stride <= 4; stride++ {
			for dilation := 1; dilation <= min(kernel, 2); dilation++ {
				for before := 0; before <= min(kernel, 3); before++ {
					for after := max(0, before-1); after <= before+1; after++ {
						for extent := 1; extent <= 4; extent++ {
							if (kernel-1)*dilation < extent+before+after {
								list = append(list, axis{kernel, stride, before, after, dilation, extent})
							}
						}
					}
				}
			}
		}
	}
	return list
}

// smallConvs are small images of every geometry of axes, one in `every` of
// them: of the window's two axes on their own, and square windows of the sizes
// that networks are made of. The number of images and the channels go round.
func smallConvs(every int) (ps []engine.ConvProblem) {
	list := axes()
	for i := 0; i < len(list); i += every {
		ps = append(ps, smallConv(len(ps), list[(i*37+11)%len(list)], list[i]))
	}
	for _, size := range [][2]int{{3, 1}, {3, 2}, {4, 2}} {
		var square []axis
		for _, a := range list {
			if a.kernel == size[0] && a.stride == size[1] && a.dilation == 1 {
				square = append(square, a)
			}
		}
		for i := 0; i < len(square); i += 1 + every/7 {
			ps = append(ps, smallConv(len(ps), square[(i*7+3)%len(square)], square[i]))
		}
	}
	return ps
}

func smallConv(i int, h, w axis) engine.ConvProblem {
	channels := [][3]int{{16, 16, 1}, {3, 32, 1}, {24, 20, 1}, {8, 12, 2}, {32, 16, 1}, {16, 16, 16}, {5, 1, 1}, {1, 16, 1}} // of x, of y, groups
	ch := channels[i%len(channels)]
	conv := graph.Conv{Groups: ch[2], Window: graph.Window{
		KH: h.kernel, StrideH: h.stride, PadT: h.before, PadB: h.after, DilH: h.dilation,
		KW: w.kernel, StrideW: w.stride, PadL: w.before, PadR: w.after, DilW: w.dilation,
	}}
	return NewConvCase("", 1+i%3, ch[0], h.extent, w.extent, ch[1], conv).ConvProblem
}

// runSmall holds one engine after the other to smallConvs.
func (s *suite) runSmall(t *testing.T) {
	every := 7
	if brief() {
		every = shortEvery
	}
	for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
		t.Run(fmt.Sprintf("small/%v", op), func(t *testing.T) {
			for i, p := range smallConvs(every) {
				p = s.conv(p)
				x := s.expectation(convReference(op, p))
				s.checkOn(t, i%len(s.engines), x, p.String()+", ", func(e engine.Engine) (engine.Kernel, error) { return e.Conv(op, p) })
			}
		})
	}
}
