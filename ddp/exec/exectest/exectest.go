package exectest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// Options say what a backend offers.
type Options struct {
	// DTypes are the floating-point types in which every op is tried; default
	// F32 alone. Casts between all types are always tried.
	DTypes []graph.DType
	// Graphs is the number of random graphs; default 200.
	Graphs int
	// Skip names cases that the backend does not offer, with the reason.
	Skip map[string]string
	// NoLimit says that the backend plans no memory, and ignores exec.Options.MaxBytes.
	NoLimit bool
}

func (o Options) dtypes() []graph.DType {
	if len(o.DTypes) == 0 {
		return []graph.DType{graph.F32}
	}
	return o.DTypes
}

// Run holds the backends that open makes to the reference. Each subtest opens
// its own and closes it.
func Run(t *testing.T, open func(t *testing.T) exec.Backend, o Options) {
	for name := range o.Skip {
		if !slices.ContainsFunc(append(Cases(), Networks()...), func(c Case) bool { return c.Name == name }) {
			t.Fatalf("skip: there is no case %q", name)
		}
	}
	for _, dt := range o.dtypes() {
		t.Run("ops/"+dt.String(), func(t *testing.T) { runCases(t, open(t), Cases(), dt, o) })
		t.Run("networks/"+dt.String(), func(t *testing.T) { runCases(t, open(t), Networks(), dt, o) })
		t.Run("random/"+dt.String(), func(t *testing.T) { runRandom(t, open(t), dt, o) })
	}
	t.Run("program", func(t *testing.T) { runPrograms(t, open(t), o.dtypes()[0]) })
	t.Run("memory", func(t *testing.T) { runMemory(t, open(t), o) })
	t.Run("trace", func(t *testing.T) { runTrace(t, open, o.dtypes()[0]) })
	t.Run("collectives", func(t *testing.T) { runCollectives(t, open, o.dtypes()[0]) })
}

func closeBackend(t *testing.T, be exec.Backend) {
	if err := be.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func runCases(t *testing.T, be exec.Backend, cases []Case, dt graph.DType, o Options) {
	defer closeBackend(t, be)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if why, ok := o.Skip[c.Name]; ok {
				t.Skip(why)
			}
			if err := Check(be, c, dt); err != nil {
				t.Error(err)
			}
		})
	}
}

// Graph builds the case's graph for type dt: arguments are leaves named a0,
// a1, … of the given kind, outputs are y0, y1, ….
func (c Case) Graph(dt graph.DType, kind graph.Kind) (*graph.Graph, error) {
	var b graph.Builder
	x := make([]graph.ID, len(c.Args))
	for i, a := range c.Args {
		if kind == graph.Var {
			x[i] = b.Var(argName(i), a.Type(dt))
		} else {
			x[i] = b.Input(argName(i), a.Type(dt))
		}
	}
	for i, y := range c.Build(&b, x) {
		b.Output(fmt.Sprintf("y%d", i), y)
	}
	return b.Build()
}

func argName(i int) string { return fmt.Sprintf("a%d", i) }

// Tensors are the case's arguments by name, where dt is under test.
func (c Case) Tensors(dt graph.DType) map[string]*exec.Tensor {
	all := tensors{}
	for i, a := range c.Args {
		all[argName(i)] = a.Tensor(dt, c.Name, i)
	}
	return all
}

// Check runs a case on be, with its arguments as inputs and as variables, and
// says where it strays from the reference.
func Check(be exec.Backend, c Case, dt graph.DType) error {
	arguments := tensors(c.Tensors(dt))
	for _, kind := range []graph.Kind{graph.Input, graph.Var} {
		g, err := c.Graph(dt, kind)
		if err != nil {
			return err
		}
		want, err := evaluate(ref.New(), g, arguments, arguments)
		if err != nil {
			return fmt.Errorf("reference: %w", err)
		}
		got, err := runThrice(be, g, arguments)
		if err != nil {
			return fmt.Errorf("arguments as %ss: %w", kind, err)
		}
		bound, err := c.bounds(dt, kind, arguments, want)
		if err != nil {
			return err
		}
		for _, o := range g.Outputs() {
			if err := near(o.Name, got[o.Name], want[o.Name], bound(o.Name)); err != nil {
				return fmt.Errorf("arguments as %ss: %w", kind, err)
			}
		}
	}
	return nil
}

// runThrice runs g on the arguments, on others, and on the arguments again: the
// first and the last must agree bit for bit, and no argument may change.
func runThrice(be exec.Backend, g *graph.Graph, arguments tensors) (out tensors, err error) {
	s, err := openSession(be, g, arguments, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.prog.Close()) }()
	var runs [3]tensors
	for i := range runs {
		in := arguments
		if i == 1 {
			in = blank(arguments)
		}
		if runs[i], err = s.run(g, in); err != nil {
			return nil, fmt.Errorf("run %d: %w", i, err)
		}
		if err := s.unchanged(in, arguments); err != nil {
			return nil, fmt.Errorf("run %d: %w", i, err)
		}
	}
	for name, first := range runs[0] {
		if err := sameBits("the third run differs from the first", name, runs[2][name], first); err != nil {
			return nil, err
		}
	}
	return runs[0], nil
}

// blank are tensors of the same types: ones, or zeros for integers, which are
// valid indices.
func blank(like tensors) tensors {
	all := tensors{}
	for name, t := range like {
		all[name] = exec.NewTensor(t.Type)
		for i := 0; t.Type.DType.IsFloat() && i < t.Type.Shape.Len(); i++ {
			all[name].SetAt(i, 1)
		}
	}
	return all
}

// unchanged checks that a run has left the inputs and variables alone.
func (s *session) unchanged(inputs, vars tensors) error {
	for name, want := range inputs {
		if in := s.prog.Input(name); in != nil {
			if err := sameBits("the run changed an input", name, in, want); err != nil {
				return err
			}
		}
	}
	for name, want := range vars {
		v, err := s.vars.Get(name)
		if err != nil {
			return err
		}
		if err := sameBits("the run changed a variable that is not assigned", name, v, want); err != nil {
			return err
		}
	}
	return nil
}

// bounds gives, by output and element, how far a result may be from want.
func (c Case) bounds(dt graph.DType, kind graph.Kind, arguments, want tensors) (func(string) func(int) float64, error) {
	switch c.Tol {
	case Exact:
		return each(func(string, int) float64 { return 0 }), nil
	case Near:
		return each(func(name string, i int) float64 {
			return 16 * want[name].Type.DType.Epsilon() * (math.Abs(want[name].At(i)) + 0.125)
		}), nil
	case Drawn:
		return each(func(name string, i int) float64 {
			return 64 * want[name].Type.DType.Epsilon() * (math.Abs(want[name].At(i)) + 1)
		}), nil
	case Sum:
		terms, err := c.magnitudes(kind, arguments)
		return each(func(name string, i int) float64 {
			return float64(c.Terms+4) * want[name].Type.DType.Epsilon() * math.Abs(terms[name].At(i))
		}), err
	case Whole:
		return c.wholeBounds(dt, kind, want)
	}
	return nil, fmt.Errorf("case %q states no tolerance", c.Name)
}

func each(f func(name string, i int) float64) func(string) func(int) float64 {
	return func(name string) func(int) float64 { return func(i int) float64 { return f(name, i) } }
}

// magnitudes are Σ|terms| of each element: the case on absolute values.
func (c Case) magnitudes(kind graph.Kind, arguments tensors) (tensors, error) {
	g, err := c.Graph(graph.F64, kind)
	if err != nil {
		return nil, err
	}
	abs := tensors{}
	for i, a := range c.Args {
		t := exec.NewTensor(a.Type(graph.F64))
		for k := range a.Shape.Len() {
			t.SetAt(k, math.Abs(arguments[argName(i)].At(k)))
		}
		abs[argName(i)] = t
	}
	return evaluate(ref.New(), g, abs, abs)
}

// wholeBounds measures what rounding costs the reference itself: float32
// against float64 on the same numbers. For other types it is scaled by ε.
func (c Case) wholeBounds(dt graph.DType, kind graph.Kind, want tensors) (func(string) func(int) float64, error) {
	loss, err := c.rounding(kind)
	return func(name string) func(int) float64 {
		bound := 64*loss(name)*dt.Epsilon()/graph.F32.Epsilon() + 64*dt.Epsilon()*largest(want[name])
		return func(int) float64 { return bound }
	}, err
}

// rounding is how far the reference in float32 is from float64 on the same numbers, by
// output.
func (c Case) rounding(kind graph.Kind) (func(name string) float64, error) {
	narrow, wide := tensors(c.Tensors(graph.F32)), tensors{}
	for i, a := range c.Args {
		t := narrow[argName(i)]
		if a.DType == 0 {
			t = widened(t)
		}
		wide[argName(i)] = t
	}
	outs := [2]tensors{}
	for i, dt := range []graph.DType{graph.F32, graph.F64} {
		g, err := c.Graph(dt, kind)
		if err != nil {
			return nil, err
		}
		in := []tensors{narrow, wide}[i]
		if outs[i], err = evaluate(ref.New(), g, in, in); err != nil {
			return nil, err
		}
	}
	return func(name string) float64 { return farthest(outs[0][name], outs[1][name]) }, nil
}

// Strays is how far a backend that rounds float32 by epsilon, relatively, strays from the
// reference on a case, at most: in units of what such rounding costs, which is what float32's
// costs the reference, scaled, and epsilon of an output's largest element.
func Strays(be exec.Backend, c Case, epsilon float64) (most float64, err error) {
	g, err := c.Graph(graph.F32, graph.Var)
	if err != nil {
		return 0, err
	}
	arguments := tensors(c.Tensors(graph.F32))
	want, err := evaluate(ref.New(), g, arguments, nil)
	if err != nil {
		return 0, err
	}
	loss, err := c.rounding(graph.Var)
	if err != nil {
		return 0, err
	}
	got, err := runThrice(be, g, arguments)
	if err != nil {
		return 0, err
	}
	for name := range want {
		cost := loss(name)*epsilon/graph.F32.Epsilon() + epsilon*largest(want[name])
		off := farthest(got[name], want[name]) / cost
		if math.IsNaN(off) || math.IsInf(off, 0) {
			return 0, fmt.Errorf("output %q of %q is no number", name, c.Name)
		}
		most = max(most, off)
	}
	return most, nil
}
