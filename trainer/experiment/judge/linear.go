package judge

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// Linear claims that the means of values lie on a straight line over X: each
// within the fraction Within of what the line of least squares has there. With
// Log it is their logarithms that lie on a line, as those of a geometric
// sequence do, within the distance Within.
type Linear struct {
	Of     []Value
	X      []float64
	Log    bool
	Within float64
}

// Values implements Check.
func (c Linear) Values() []Value { return c.Of }

// Judge implements Check.
func (c Linear) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s linear over %v within %s %%", names(c.Of), c.X, digits(100*c.Within))
	if c.Log {
		claim = fmt.Sprintf("log of %s linear over %v within %s", names(c.Of), c.X, digits(c.Within))
	}
	if v := absent(t, claim, c.Of); v != nil {
		return *v
	}
	y := make([]float64, len(c.Of))
	for i, v := range c.Of {
		if y[i] = t.Spread(v).Mean; c.Log {
			y[i] = math.Log(y[i])
		}
	}
	a, b := stat.LinearRegression(c.X, y, nil, false)
	at, worst := 0, 0.0
	for i, x := range c.X {
		line := a + b*x
		off := math.Abs(y[i] - line)
		if !c.Log && off != 0 { // what is 0 is no part of a line that is 0 there
			off /= math.Abs(line)
		}
		if !(off <= worst) { // NaN is the worst: where one is, all are
			at, worst = i, off
		}
	}
	text := fmt.Sprintf("slope %s, start %s; at %s it is off by %s", digits(b), digits(a), digits(c.X[at]), c.distance(worst))
	return verdict(claim, worst <= c.Within, "%s", text)
}

func (c Linear) distance(d float64) string {
	if c.Log {
		return digits(d)
	}
	return digits(100*d) + " %"
}
