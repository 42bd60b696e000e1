package nn

import (
	"fmt"
	"slices"
	"strings"

	"ebtrain/ddp/graph"
)

// Mode says which statistics batch norm uses and whether layers with state
// (batch norm, spectral norm) advance it.
type Mode uint8

const (
	// Train uses the batch's statistics and advances all state.
	Train Mode = iota + 1
	// BatchStats uses the batch's statistics and advances nothing.
	BatchStats
	// Eval uses running statistics and advances nothing.
	Eval
)

// Role says what a variable is for.
type Role uint8

const (
	Weight  Role = iota + 1 // learned
	Buffer                  // state of a layer: running statistics, spectral vectors
	Moment                  // state of an optimiser
	Average                 // moving average of a weight
	// Scratch is a rank's own state. It may differ between ranks, and no
	// checkpoint holds it: a resumed run begins with its initial value again, so
	// what is to go on as if never interrupted does not belong here.
	Scratch
)

func (r Role) String() string {
	if r < Weight || r > Scratch {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return [...]string{Weight: "weight", Buffer: "buffer", Moment: "moment", Average: "average", Scratch: "scratch"}[r]
}

const averageSuffix = ".average"

// AverageOf names the moving average of a weight.
func AverageOf(weight string) string { return weight + averageSuffix }

// AveragedBy names the weight whose moving average has that name.
func AveragedBy(average string) string { return strings.TrimSuffix(average, averageSuffix) }

// Variable describes one variable of a model.
type Variable struct {
	Name string
	Type graph.Type
	Role Role
	Init Init
}

// Context is a graph under construction and the variables of the model.
type Context struct {
	*graph.Builder
	// DType of the variables declared from now on: F32, or F64 for checks by
	// finite differences.
	DType graph.DType
	// Mode of the layers applied from now on.
	Mode Mode
	// World is the number of ranks whose batches make the global batch. Batch
	// norm takes its statistics over all of them.
	World int
	// Frozen treats the weights of layers applied from now on as constants.
	Frozen bool

	path  []string
	vars  []Variable
	index map[string]int
	now   map[string]graph.ID // newest value
}

// NewContext starts a graph of F32 whose ranks number world.
func NewContext(mode Mode, world int) *Context {
	return &Context{Builder: &graph.Builder{}, DType: graph.F32, Mode: mode, World: world,
		index: map[string]int{}, now: map[string]graph.ID{}}
}

// Scope runs f with name added to the names of variables and errors.
func (c *Context) Scope(name string, f func()) {
	c.path = append(c.path, name)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	c.Builder.Scope(name, f)
}

// Batch is the first extent of x; 0 after an error, when x may have none.
func (c *Context) Batch(x graph.ID) int {
	if s := c.Shape(x); c.Err() == nil && s.Rank() > 0 {
		return s.At(0)
	}
	return 0
}

// Weight is the newest value of the learned variable name of the current
// scope, declared on first use.
func (c *Context) Weight(name string, s graph.Shape, init Init) graph.ID {
	w := c.variable(name, graph.Type{DType: c.DType, Shape: s}, Weight, init)
	if c.Frozen {
		return c.StopGrad(w)
	}
	return w
}

// Buffer is the newest value of a layer's state, declared on first use. It is
// a constant to differentiation.
func (c *Context) Buffer(name string, s graph.Shape, init Init) graph.ID {
	return c.StopGrad(c.variable(name, graph.Type{DType: c.DType, Shape: s}, Buffer, init))
}

// Scratch is the newest value of a rank's own state, declared on first use. It
// is a constant to differentiation.
func (c *Context) Scratch(name string, s graph.Shape, init Init) graph.ID {
	return c.StopGrad(c.variable(name, graph.Type{DType: c.DType, Shape: s}, Scratch, init))
}

// Moment is the newest value of an optimiser's state, declared on first use.
func (c *Context) Moment(name string, s graph.Shape) graph.ID {
	return c.variable(name, graph.Type{DType: c.DType, Shape: s}, Moment, nil)
}

func (c *Context) variable(name string, t graph.Type, role Role, init Init) graph.ID {
	full := c.fullName(name)
	if i, ok := c.index[full]; ok {
		if v := c.vars[i]; v.Type != t || v.Role != role {
			c.Fail(fmt.Errorf("variable %s is a %v %v, and asked for as a %v %v", full, v.Role, v.Type, role, t))
			return 0
		}
		return c.now[full]
	}
	c.index[full] = len(c.vars)
	c.vars = append(c.vars, Variable{full, t, role, init})
	c.now[full] = c.Builder.Var(full, t)
	return c.now[full]
}

func (c *Context) fullName(name string) string {
	return strings.Join(append(c.path[:len(c.path):len(c.path)], name), ".")
}

// Update gives the variable name of the current scope a new value, which later
// reads see.
func (c *Context) Update(name string, value graph.ID) { c.Set(c.fullName(name), value) }

// Set gives the variable of that full name a new value, which later reads see.
func (c *Context) Set(full string, value graph.ID) {
	i, ok := c.index[full]
	switch {
	case !ok:
		c.Fail(fmt.Errorf("variable %s is set before it is declared", full))
	case c.Err() == nil && c.Type(value) != c.vars[i].Type:
		c.Fail(fmt.Errorf("variable %s is %v, and set to %v", full, c.vars[i].Type, c.Type(value)))
	default:
		c.now[full] = value
	}
}

// Param is a learned variable and its newest value.
type Param struct {
	Name string
	ID   graph.ID
}

// Params are the learned variables whose names start with prefix and a dot, in
// the order of declaration.
func (c *Context) Params(prefix string) []Param {
	var ps []Param
	for _, v := range c.vars {
		if v.Role == Weight && strings.HasPrefix(v.Name, prefix+".") {
			ps = append(ps, Param{v.Name, c.now[v.Name]})
		}
	}
	return ps
}

// IDs are the values of ps.
func IDs(ps []Param) []graph.ID {
	ids := make([]graph.ID, len(ps))
	for i, p := range ps {
		ids[i] = p.ID
	}
	return ids
}

// Variables are all variables declared so far, in order.
func (c *Context) Variables() []Variable { return append([]Variable(nil), c.vars...) }

// Replicated are those of vars that all ranks hold alike and checkpoints keep:
// all but Scratch.
func Replicated(vars []Variable) []Variable {
	return slices.DeleteFunc(slices.Clone(vars), func(v Variable) bool { return v.Role == Scratch })
}

// Only are those of vars that have one of some roles.
func Only(vars []Variable, roles ...Role) []Variable {
	return slices.DeleteFunc(slices.Clone(vars), func(v Variable) bool { return !slices.Contains(roles, v.Role) })
}

// Commit assigns every variable that has a new value, and builds the graph.
func (c *Context) Commit() (*graph.Graph, error) {
	for _, v := range c.vars {
		leaf := c.Builder.Var(v.Name, v.Type)
		if now := c.now[v.Name]; now != leaf {
			c.Assign(leaf, now)
		}
	}
	return c.Build()
}
