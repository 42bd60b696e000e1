package eval

// Average accumulates the mean of a quantity over samples, such as a log
// likelihood, a term of the Fisher divergence, or a posterior's gap. Its zero value
// is ready. Values that are not finite make the mean so: they are not left out.
type Average struct {
	sum float64
	n   int
}

// Add adds the value of one sample.
func (a *Average) Add(v float64) {
	a.sum += v
	a.n++
}

// N is the number of values.
func (a *Average) N() int { return a.n }

// Mean is the mean of the values; NaN if there are none.
func (a *Average) Mean() float64 { return a.sum / float64(a.n) }
