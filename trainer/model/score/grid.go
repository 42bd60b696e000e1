package score

import (
	"errors"
	"fmt"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/setting"
)

// Spacing says how the levels of a grid lie between its ends.
type Spacing string

const (
	Linear Spacing = "linear" // equal differences
	Log    Spacing = "log"    // equal ratios
)

// Spacings are all of them.
func Spacings() []Spacing { return []Spacing{Linear, Log} }

// Grid are the noise levels of multi-scale denoising: the sample in slot i of a
// global batch of n gets the level i of n that reach from Least to Most. So a
// batch always has all levels, and which sample has which is decided by the order
// of the data alone, on any number of ranks.
type Grid struct {
	Least   float64 // σ of slot 0
	Most    float64 // σ of the last slot
	Spacing Spacing
}

// Validate says what is wrong with the grid.
func (g Grid) Validate() error {
	var errs []error
	if !(g.Least > 0 && g.Most > g.Least && g.Most <= math.MaxFloat32) {
		errs = append(errs, fmt.Errorf("want noise levels that rise from above 0, got %v to %v: --sigma-max must be above --sigma-min", g.Least, g.Most))
	}
	if g.Spacing != Linear && g.Spacing != Log {
		errs = append(errs, fmt.Errorf("want a spacing of noise levels that is %s, got %q", setting.Choices(Spacings()), string(g.Spacing)))
	}
	return errors.Join(errs...)
}

// leastOfGrid are the samples of a global batch that has both ends of a grid.
const leastOfGrid = 2

// Check says that a global batch is too small for the grid.
func (g Grid) Check(batch int) error {
	if batch < leastOfGrid {
		return fmt.Errorf("the noise levels from %v to %v are spread over the global batch, and a batch of %d has no room for both ends: take a --batch of at least %d", g.Least, g.Most, batch, leastOfGrid)
	}
	return nil
}

// Levels are those of this rank's batch samples, (batch), of c.World·batch in the
// global batch; key, of graph.KeyType, says in which slot they begin.
func (g Grid) Levels(c *nn.Context, key graph.ID, batch int) graph.ID {
	n := c.World * batch
	if err := g.Check(n); err != nil {
		c.Fail(err)
		return 0
	}
	first := c.Cast(c.Slice(key, 0, 2, 3, 1), c.DType)
	slot := c.Add(c.Iota(graph.T(c.DType, batch), 0), first)
	if g.Spacing == Log {
		step := math.Log(g.Most/g.Least) / float64(n-1)
		return c.Exp(c.Shift(c.Scale(slot, step), math.Log(g.Least)))
	}
	return c.Shift(c.Scale(slot, (g.Most-g.Least)/float64(n-1)), g.Least)
}
