package exec

import (
	"fmt"
	"slices"
	"sync"

	"ebtrain/ddp/graph"
)

// HostVars is a set of variables in host memory, for backends that compute
// there. The memory of a variable does not move, so programs keep pointers to it.
// The zero value is an empty set.
type HostVars struct {
	mu    sync.Mutex
	names []string
	vals  map[string]*Tensor
}

// Names are the names, in the order of creation.
func (v *HostVars) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.names)
}

// Type is the type of a variable, and whether there is one.
func (v *HostVars) Type(name string) (graph.Type, bool) {
	if t := v.Tensor(name); t != nil {
		return t.Type, true
	}
	return graph.Type{}, false
}

// Set copies t into the variable, which is created if there is none.
func (v *HostVars) Set(name string, t *Tensor) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, ok := v.vals[name]
	if !ok {
		if v.vals == nil {
			v.vals = map[string]*Tensor{}
		}
		old = NewTensor(t.Type)
		v.vals[name] = old
		v.names = append(v.names, name)
	}
	if old.Type != t.Type {
		return fmt.Errorf("variable %q is %v and cannot be set to %v", name, old.Type, t.Type)
	}
	copy(old.Bytes(), t.Bytes())
	return nil
}

// Get copies the variable.
func (v *HostVars) Get(name string) (c *Tensor, err error) {
	err = v.View(name, func(t *Tensor) {
		c = NewTensor(t.Type)
		copy(c.Bytes(), t.Bytes())
	})
	return c, err
}

// View calls f with the variable itself.
func (v *HostVars) View(name string, f func(*Tensor)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, ok := v.vals[name]
	if !ok {
		return fmt.Errorf("there is no variable %q", name)
	}
	f(t)
	return nil
}

// Tensor is the variable itself, nil if there is none.
func (v *HostVars) Tensor(name string) *Tensor {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.vals[name]
}
