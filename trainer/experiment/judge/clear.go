package judge

import (
	"fmt"
	"math"
)

// Clear claims that the mean of Low is below that of High by more than SDs times the
// larger of their standard deviations, both over the seeds that the two have. One seed has
// none.
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
	seeds := t.common(c.Values())
	if len(seeds) == 0 {
		return Verdict{claim, NotRun, noCommon}
	}
	low, high := t.over(c.Low, seeds), t.over(c.High, seeds)
	if len(seeds) < 2 {
		return Verdict{claim, Undecided, fmt.Sprintf("%s and %s, of %s that both have: want two", digits(low.Mean), digits(high.Mean), seedCount(len(seeds)))}
	}
	by, sd := high.Mean-low.Mean, max(low.SD, high.SD)
	text := fmt.Sprintf("%s and %s, apart by %s", digits(low.Mean), digits(high.Mean), digits(by))
	if sd > 0 {
		text += fmt.Sprintf(", which is %s sd", digits(math.Round(10*by/sd)/10))
	}
	return verdict(claim, by > c.SDs*sd, "%s", text)
}
