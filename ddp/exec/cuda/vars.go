package cuda

import (
	"fmt"
	"slices"
	"sync"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// variables implement exec.Vars in the memory of a device. The memory of a
// variable does not move, so programs keep its address. A variable of four axes may
// lie in channels-last order: the first program that is compiled with it decides.
type variables struct {
	b     *Backend
	mu    sync.Mutex
	names []string
	vals  map[string]*variable
}

type variable struct {
	typ   graph.Type
	at    driver.Ptr
	last  bool // lies in channels-last order
	fixed bool // a program was compiled with it
}

// NewVars returns an empty set of variables on the device.
func (b *Backend) NewVars() exec.Vars {
	v := &variables{b: b, vals: map[string]*variable{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vars = append(b.vars, v)
	return v
}

// Names are the names, in the order of creation.
func (v *variables) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.names)
}

// Type is the type of a variable, and whether there is one.
func (v *variables) Type(name string) (graph.Type, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, ok := v.vals[name]; ok {
		return x.typ, true
	}
	return graph.Type{}, false
}

// Set copies t into the variable, which is created if there is none.
func (v *variables) Set(name string, t *exec.Tensor) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	x, ok := v.vals[name]
	if !ok {
		at, err := v.b.alloc(int64(t.Type.Bytes()), fmt.Sprintf("variable %q", name))
		if err != nil {
			return err
		}
		x = &variable{typ: t.Type, at: at}
		v.vals[name] = x
		v.names = append(v.names, name)
	}
	if x.typ != t.Type {
		return fmt.Errorf("variable %q is %v and cannot be set to %v", name, x.typ, t.Type)
	}
	if err := v.write(x, t); err != nil {
		return fmt.Errorf("variable %q: %w", name, err)
	}
	return nil
}

// write copies t to the device, in the order in which the variable lies.
func (v *variables) write(x *variable, t *exec.Tensor) error {
	if x.last {
		t = exec.ChannelsLast(t)
	}
	return v.b.upload(x.at, t.Bytes())
}

// Get copies the variable to the host.
func (v *variables) Get(name string) (*exec.Tensor, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.read(name)
}

func (v *variables) read(name string) (*exec.Tensor, error) {
	x, ok := v.vals[name]
	if !ok {
		return nil, fmt.Errorf("there is no variable %q", name)
	}
	typ := x.typ
	if x.last {
		s := typ.Shape
		typ = graph.T(typ.DType, s.At(0), s.At(2), s.At(3), s.At(1))
	}
	t := exec.NewTensor(typ)
	if err := v.b.download(t.Bytes(), x.at); err != nil {
		return nil, fmt.Errorf("variable %q: %w", name, err)
	}
	if x.last {
		t = exec.ChannelsFirst(t)
	}
	return t, nil
}

// View calls f with a copy of the variable.
func (v *variables) View(name string, f func(*exec.Tensor)) error {
	t, err := v.Get(name)
	if err != nil {
		return err
	}
	f(t)
	return nil
}

// order is how a variable lies, and whether that is fixed: see plan.Options.VarLast.
func (v *variables) order(name string) (last, fixed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, ok := v.vals[name]; ok {
		return x.last, x.fixed
	}
	return false, false
}

// take is the address of a variable for a program that wants that type and order,
// which is its order from then on.
func (v *variables) take(name string, want graph.Type, last bool) (driver.Ptr, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x, ok := v.vals[name]
	switch {
	case !ok:
		return 0, fmt.Errorf("variable %q is not set; want %v", name, want)
	case x.typ != want:
		return 0, fmt.Errorf("variable %q is %v, want %v", name, x.typ, want)
	case x.fixed && x.last != last:
		return 0, fmt.Errorf("variable %q was compiled into another program while this one was planned: compile programs that share variables one after the other", name)
	case x.last != last:
		t, err := v.read(name)
		if err != nil {
			return 0, err
		}
		x.last = last
		if err := v.write(x, t); err != nil {
			return 0, fmt.Errorf("variable %q: %w", name, err)
		}
	}
	x.fixed = true
	return x.at, nil
}

// free releases the memory of all variables.
func (v *variables) free() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var first error
	for _, name := range v.names {
		if err := v.b.dev.Free(v.vals[name].at); err != nil && first == nil {
			first = err
		}
	}
	v.names, v.vals = nil, map[string]*variable{}
	return first
}
