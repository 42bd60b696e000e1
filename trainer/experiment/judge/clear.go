package judge

import (
	"fmt"
	"math"
)

// Clear claims that the mean of Low is below that of High by more than SDs times the
// larger of their standard deviations over seeds. One seed has none.
type Clear struct {
	Low, High Value
	SDs       float64
}

// Values implements Check.
func (c Clear) Values() []Value { return []Value{c.Low, c.High} }

// Judge implements Check.
func (c Clear) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s below %s by more than %s sd", c.Low, c.High, digits(c.SDs))
	if v := absent(t, claim, c.Values()); v != nil {
		return *v
	}
	low, high := t.Spread(c.Low), t.Spread(c.High)
	if n := min(low.N, high.N); n < 2 {
		return Verdict{claim, Undecided, fmt.Sprintf("%s and %s, of %s: want two of each", digits(low.Mean), digits(high.Mean), seedCount(n))}
	}
	by, sd := high.Mean-low.Mean, max(low.SD, high.SD)
	text := "%s and %s, apart by %s, which is %s sd"
	return verdict(claim, by > c.SDs*sd, text, digits(low.Mean), digits(high.Mean), digits(by), digits(math.Round(10*by/sd)/10))
}
