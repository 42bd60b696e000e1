package exec_test

import (
	"bytes"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Element (n, c, h, w) becomes element (n, h, w, c), in every type, and back.
func TestChannels(t *testing.T) {
	const images, channels, height, width = 3, 35, 7, 11 // more than one tile
	for _, dt := range []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I64, graph.U8} {
		x := exec.NewTensor(graph.T(dt, images, channels, height, width))
		for i := range x.Type.Shape.Len() {
			x.SetAt(i, float64(i))
		}
		y := exec.ChannelsLast(x)
		if y.Type != graph.T(dt, images, height, width, channels) {
			t.Fatalf("%v became %v", x.Type, y.Type)
		}
		for n := range images {
			for c := range channels {
				for h := range height {
					for w := range width {
						if got, want := y.At(((n*height+h)*width+w)*channels+c), x.At(((n*channels+c)*height+h)*width+w); got != want {
							t.Fatalf("%v: (%d,%d,%d,%d) is %v, want %v", dt, n, c, h, w, got, want)
						}
					}
				}
			}
		}
		if z := exec.ChannelsFirst(y); z.Type != x.Type || !bytes.Equal(z.Bytes(), x.Bytes()) {
			t.Errorf("%v: there and back it is something else", dt)
		}
	}
}

// Many elements are shared out, and arrays without any are left alone.
func TestManyChannels(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F32, 40, 64, 9, 9))
	for i := range x.Type.Shape.Len() {
		x.SetAt(i, float64(i))
	}
	y := exec.ChannelsLast(x)
	if got, want := y.At(((39*9+8)*9+7)*64+63), x.At(((39*64+63)*9+8)*9+7); got != want {
		t.Errorf("the last but one is %v, want %v", got, want)
	}
	if z := exec.ChannelsFirst(y); !bytes.Equal(z.Bytes(), x.Bytes()) {
		t.Error("there and back it is something else")
	}
	if e := exec.ChannelsLast(exec.NewTensor(graph.T(graph.F32, 2, 0, 3, 3))); e.Type != graph.T(graph.F32, 2, 3, 3, 0) {
		t.Errorf("an empty array became %v", e.Type)
	}
}
