package feature

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/eval/quality"
	"ebtrain/trainer/model/nn"
)

// he is the initial weight of a layer before a ReLU: N(0, 2/fanIn).
func he(fanIn int) nn.Init { return nn.Normal(math.Sqrt(2 / float64(fanIn))) }

const (
	inputPictures = "pictures"
	outputValues  = "values"
)

// Extractor is a Net on a device.
type Extractor struct {
	Net
	program exec.Program
	batch   int
	dim     int    // of what it computes
	digits  string // see Digits; "" before that
}

// NewExtractor compiles a network's features for batches of a size.
func NewExtractor(b exec.Backend, n Net, batch int) (*Extractor, error) {
	return n.compile(b, batch, n.trunk.Dim(), n.trunk.Features)
}

// compile compiles the values that of builds of pictures, (batch, dim).
func (n Net) compile(b exec.Backend, batch, dim int, of func(*nn.Context, graph.ID) graph.ID) (*Extractor, error) {
	c := nn.NewContext(nn.Eval, 1)
	x := c.Input(inputPictures, graph.T(graph.F32, batch, n.Size.C, n.Size.H, n.Size.W))
	c.Output(outputValues, of(c, x))
	g, err := c.Commit()
	if err != nil {
		return nil, err
	}
	vars := b.NewVars()
	for _, v := range c.Variables() {
		if err := vars.Set(v.Name, n.value(v)); err != nil {
			return nil, err
		}
	}
	p, err := b.Compile(g, exec.Options{Name: "features: " + n.Name, Vars: vars})
	return &Extractor{Net: n, program: p, batch: batch, dim: dim}, err
}

// value is that of a variable.
func (n Net) value(v nn.Variable) *exec.Tensor {
	if n.values == nil {
		return v.Value(n.seed)
	}
	return n.values[v.Name]
}

// Values are those of all variables, by name.
func (n Net) Values() (map[string]*exec.Tensor, error) {
	c := nn.NewContext(nn.Eval, 1)
	x := c.Input(inputPictures, graph.T(graph.F32, 1, n.Size.C, n.Size.H, n.Size.W))
	if n.Classes > 0 {
		n.logits(c, x)
	} else {
		n.trunk.Features(c, x)
	}
	all := map[string]*exec.Tensor{}
	for _, v := range c.Variables() {
		all[v.Name] = n.value(v)
	}
	return all, c.Err()
}

// Of are the features of pictures, a row each. With a Comm, whose vectors lie in
// host memory, the ranks share the batches, and each gets all rows; nil is a world
// of one. A feature that is not finite is an error.
func (e *Extractor) Of(ctx context.Context, comm collective.Comm, x []float32) (quality.Matrix, error) {
	n := len(x) / e.Size.Len()
	if n*e.Size.Len() != len(x) {
		return quality.Matrix{}, fmt.Errorf("%d values are no pictures of %v", len(x), e.Size)
	}
	all, err := Shared(ctx, comm, "features", n, e.batch, e.dim, func(from, to int, out []float64) error {
		in := e.program.Input(inputPictures).F32()
		copy(in, x[from*e.Size.Len():to*e.Size.Len()]) // beyond the last picture are others, whose features nobody takes
		if err := exec.Run(ctx, e.program); err != nil {
			return err
		}
		for i, v := range e.program.Output(outputValues).F32()[:len(out)] {
			out[i] = float64(v)
		}
		return nil
	})
	if err != nil {
		return quality.Matrix{}, err
	}
	for i, v := range all {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return quality.Matrix{}, fmt.Errorf("features by %s: that of picture %d is %v", e.Name, i/e.dim, v)
		}
	}
	return quality.Matrix{N: n, D: e.dim, X: all}, nil
}

// Digits names how this device rounds: it is the digest of the features of a picture that is
// always the same, in each place of a batch, as far as they differ. Kept features of other
// digits must not be compared with what it computes: a picture of the training data, and the
// same one in a set, would be apart, where measures that look at neighbours count that they
// are not.
func (e *Extractor) Digits(ctx context.Context) (string, error) {
	if e.digits != "" {
		return e.digits, nil
	}
	in := e.program.Input(inputPictures).F32()
	for i := range in {
		in[i] = float32(i%e.Size.Len()*31%257)/128 - 1
	}
	if err := exec.Run(ctx, e.program); err != nil {
		return "", err
	}
	var different []byte
	for row := range slices.Chunk(e.program.Output(outputValues).F32(), e.dim) {
		var b []byte
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		if !bytes.HasSuffix(different, b) {
			different = append(different, b...)
		}
	}
	e.digits = sumOf(different)
	return e.digits, nil
}

// Close releases the program.
func (e *Extractor) Close() error { return e.program.Close() }

// Shared makes n rows of dim values, batch by batch: the ranks of comm share the
// batches, and every rank gets all rows. Which rank makes a batch changes nothing
// in it. fill is told a batch's rows and where to put them. nil is a world of one.
func Shared[T float32 | float64](ctx context.Context, comm collective.Comm, label string, n, batch, dim int, fill func(from, to int, out []T) error) ([]T, error) {
	rank, world := 0, 1
	if comm != nil {
		rank, world = comm.Rank(), comm.Size()
	}
	part := ((n+batch-1)/batch + world - 1) / world * batch // rows of a rank
	out := make([]T, world*part*dim)
	for from := rank * part; from < min(n, (rank+1)*part); from += batch {
		to := min(n, from+batch)
		if err := fill(from, to, out[from*dim:to*dim]); err != nil {
			return nil, err
		}
	}
	if world > 1 {
		if err := collective.Do(ctx, comm, collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(out), Label: label}); err != nil {
			return nil, err
		}
	}
	return out[:n*dim], nil
}

// Multiplier computes quality's products on a device, in float32.
type Multiplier struct {
	backend  exec.Backend
	programs map[[3]int]exec.Program
}

// NewMultiplier makes a Multiplier.
func NewMultiplier(b exec.Backend) *Multiplier {
	return &Multiplier{b, map[[3]int]exec.Program{}}
}

// Products is a quality.Products; the context is that of every call.
func (m *Multiplier) Products(ctx context.Context) quality.Products {
	return func(x, y quality.Matrix, out []float64) error {
		p, err := m.program(x.N, y.N, x.D)
		if err != nil {
			return err
		}
		for name, from := range map[string]quality.Matrix{"x": x, "y": y} {
			in := p.Input(name).F32()
			for i, v := range from.X {
				in[i] = float32(v)
			}
		}
		if err := exec.Run(ctx, p); err != nil {
			return err
		}
		for i, v := range p.Output(outputValues).F32() {
			out[i] = float64(v)
		}
		return nil
	}
}

func (m *Multiplier) program(n, k, d int) (exec.Program, error) {
	if p := m.programs[[3]int{n, k, d}]; p != nil {
		return p, nil
	}
	b := &graph.Builder{}
	b.Output(outputValues, b.MatMul(b.Input("x", graph.T(graph.F32, n, d)), b.Input("y", graph.T(graph.F32, k, d)), false, true))
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	p, err := m.backend.Compile(g, exec.Options{Name: "products", Vars: m.backend.NewVars()})
	if err == nil {
		m.programs[[3]int{n, k, d}] = p
	}
	return p, err
}

// Close releases the programs.
func (m *Multiplier) Close() error {
	var errs []error
	for _, p := range m.programs {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
