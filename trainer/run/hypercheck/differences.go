package hypercheck

import (
	"context"
	"hash/fnv"
	"math"

	"gonum.org/v1/gonum/floats"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
)

// differences compares g with central differences of q's upper loss, for each
// network along this rank's share of the random directions.
func (q *program) differences(ctx context.Context, t *Table, g gradient, comm collective.Comm) error {
	for i := range t.Networks {
		n := &t.Networks[i]
		theta, err := q.values(n.variables)
		if err != nil {
			return err
		}
		// How steep J is expected to be along a random direction of this length.
		steep := n.scale * length(theta) / math.Sqrt(float64(n.Size))
		grad := make([]float64, 0, n.Size)
		for _, name := range n.variables {
			grad = append(grad, g.of[name]...)
		}
		n.judged = make([]judged, q.check.Directions)
		for k := comm.Rank(); k < q.check.Directions; k += comm.Size() {
			d := q.direction(k, n, theta)
			exact := floats.Dot(grad, d)
			tries, err := q.tries(ctx, n.variables, theta, d, exact, max(math.Abs(exact), steep), t.Upper)
			if err != nil {
				return err
			}
			n.judged[k] = judgedOf(tries)
		}
		if err := q.move(n.variables, theta, theta, 0); err != nil {
			return err
		}
	}
	return nil
}

// tries are central differences along d at all steps, beside the exact slope. One
// that agrees to a tenth of what is allowed at the likely step is the last.
func (q *program) tries(ctx context.Context, names []string, theta, d []float64, exact, scale, upper float64) ([]try, error) {
	var all []try
	for _, h := range steps() {
		slope, err := q.slope(ctx, names, theta, d, h)
		if err != nil {
			return nil, err
		}
		t := try{ratio(slope-exact, scale), allowed(upper, scale, h)}
		all = append(all, t)
		if math.Abs(t.off) <= allowed(upper, scale, likely)/10 {
			break
		}
	}
	return all, nil
}

// values are the named variables, one after the other.
func (q *program) values(names []string) ([]float64, error) {
	var all []float64
	for _, name := range names {
		v, err := q.vars.Get(name)
		if err != nil {
			return nil, err
		}
		all = append(all, v.F64()...)
	}
	return all, nil
}

// length is that of directions: as long as the values θ, or 1 if those are zero.
func length(theta []float64) float64 {
	if l := floats.Norm(theta, 2); l > 0 {
		return l
	}
	return 1
}

// direction is random direction k of a network, normal but for its length.
func (q *program) direction(k int, n *Network, theta []float64) []float64 {
	d := make([]float64, n.Size)
	at := 0
	for _, name := range n.variables {
		h := fnv.New64a()
		h.Write([]byte(name)) // a hash never fails to take a write
		to := at + n.sizes[name]
		philox.Name{Seed: q.check.Seed, Purpose: philox.Testing, Sub: uint16(k),
			Step: uint32(h.Sum64() >> 32), Sample: uint32(h.Sum64())}.Normal(d[at:to])
		at = to
	}
	floats.Scale(length(theta)/floats.Norm(d, 2), d)
	return d
}

// slope is the central difference of the upper loss at theta along d, of step h.
func (q *program) slope(ctx context.Context, names []string, theta, d []float64, h float64) (float64, error) {
	var j [2]float64
	for i, sign := range []float64{1, -1} {
		if err := q.move(names, theta, d, sign*h); err != nil {
			return 0, err
		}
		var err error
		if j[i], err = q.upper(ctx); err != nil {
			return 0, err
		}
	}
	return (j[0] - j[1]) / (2 * h), nil
}

// move sets the named variables to theta + h·d.
func (q *program) move(names []string, theta, d []float64, h float64) error {
	at := 0
	for _, name := range names {
		typ, _ := q.vars.Type(name)
		v := exec.NewTensor(typ)
		for i := range v.F64() {
			v.F64()[i] = theta[at] + h*d[at]
			at++
		}
		if err := q.vars.Set(name, v); err != nil {
			return err
		}
	}
	return nil
}
