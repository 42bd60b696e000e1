package cpu

// A backend of Config.BF16 lets a problem be computed as bfloat16 where an
// element of each operand is used more than once or twice.
//
// A product with one row, one column or one term, and a convolution with one
// channel on either side, stay float32. They read each number of their matrix
// once, so bfloat16 saves nothing; and they are what should be exact: the
// power iterations of spectral norm, and the layer that makes a scalar energy.
// The rule depends on the shapes alone.

func (p *convProblem) fitsBF16() bool { return p.C > p.Groups && p.O > p.Groups }

func (p *matMulProblem) fitsBF16() bool { return min(p.M, p.N, p.K) > 1 }
