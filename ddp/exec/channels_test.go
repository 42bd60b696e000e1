package exec_test

import (
	"bytes"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Element (n, c, h, w) becomes element (n, h, w, c), in every type, and back.
func TestChannels(t *testing.T) {
	for _, dt := range []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I64, graph.U8} {
		x := exec.NewTensor(graph.T(dt, 2, 3, 4, 5))
		for i := range x.Type.Shape.Len() {
			x.SetAt(i, float64(i))
		}
		y := exec.ChannelsLast(x)
		if y.Type != graph.T(dt, 2, 4, 5, 3) {
			t.Fatalf("%v became %v", x.Type, y.Type)
		}
		for n := range 2 {
			for c := range 3 {
				for h := range 4 {
					for w := range 5 {
						if got, want := y.At(((n*4+h)*5+w)*3+c), x.At(((n*3+c)*4+h)*5+w); got != want {
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
