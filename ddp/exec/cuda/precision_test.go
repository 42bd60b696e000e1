package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/exectest"
)

// TestPrecision holds networks in TF32 and BF16 to the reference, within a few times what
// their rounding costs. They are rounded, too, but for plain kernels that multiply float32.
func TestPrecision(t *testing.T) {
	names := []string{"energy, first order", "batch norm", "generator"}
	for _, p := range []struct {
		c     Config
		bits  int // behind the point
		least float64
	}{{Config{Precision: TF32}, 10, 0.2}, {Config{Precision: TF32, Plain: true}, 10, 0}, {Config{Precision: BF16}, 7, 0.2}, {Config{Precision: BF16, Plain: true}, 7, 0.2}} {
		t.Run(fmt.Sprintf("%v, plain %v", p.c.Precision, p.c.Plain), func(t *testing.T) {
			m := cudatest.Use(t)
			b := open(t, p.c)
			most := 0.0
			for _, c := range exectest.Networks() {
				if !slices.Contains(names, c.Name) {
					continue
				}
				off, err := exectest.Strays(b, c, math.Ldexp(1, -p.bits))
				if err != nil || off > 4 {
					t.Errorf("%s strays by %.3g of what rounding costs: %v", c.Name, off, err)
				}
				most = max(most, off)
			}
			if most < p.least {
				t.Errorf("none strays by more than %.3g of what rounding costs: nothing is rounded", most)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			m.Clean()
		})
	}
}
