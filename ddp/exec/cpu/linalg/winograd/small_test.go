package winograd

import (
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/graph"
)

// TestSmallShapes holds random small convolutions to the suite's tolerance, also those
// that the cost model would never send here: few tiles, and those mostly beyond the
// image, are where errors are biggest for what is summed.
func TestSmallShapes(t *testing.T) { each(t, testSmallShapes) }

func testSmallShapes(t *testing.T, i *isa) {
	e := always(t, 1, i)
	closeAfter(t, e)
	shapes := 60
	if testing.Short() {
		shapes = 6
	}
	rng := rand.New(rand.NewPCG(5, 7))
	for range shapes {
		conv := graph.NewConv(3, 1, rng.IntN(3))
		if rng.IntN(2) == 0 {
			conv = graph.NewConv(4, 2, rng.IntN(4))
		}
		h, w := max(1, conv.KH-2*conv.PadT)+rng.IntN(5), max(1, conv.KW-2*conv.PadL)+rng.IntN(5)
		p := enginetest.NewConvCase("", 1+rng.IntN(3), lanes*(1+rng.IntN(3)), h, w, lanes*(1+rng.IntN(3)), conv).ConvProblem
		for _, op := range ops {
			worst, err := enginetest.TiledError(e, op, p)
			if err != nil {
				t.Fatal(err)
			}
			if !(worst <= 1) {
				t.Errorf("%v of %v: off by %.2f times the tolerance", op, p, worst)
			}
		}
	}
}
