package cpu

import (
	"fmt"
	"slices"
	"sync"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Vars is a set of variables in host memory. The memory of a variable does
// not move, so programs keep pointers to it.
type Vars struct {
	mu    sync.Mutex
	names []string
	vals  map[string]*exec.Tensor
}

// Names are the names, in the order of creation.
func (v *Vars) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.names)
}

// Type is the type of a variable, and whether there is one.
func (v *Vars) Type(name string) (graph.Type, bool) {
	if t := v.tensor(name); t != nil {
		return t.Type, true
	}
	return graph.Type{}, false
}

// Set copies t into the variable, which is created if there is none.
func (v *Vars) Set(name string, t *exec.Tensor) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, ok := v.vals[name]
	if !ok {
		old = exec.NewTensor(t.Type)
		v.vals[name] = old
		v.names = append(v.names, name)
	}
	if old.Type != t.Type {
		return fmt.Errorf("variable %q is %v, cannot become %v", name, old.Type, t.Type)
	}
	copy(old.Bytes(), t.Bytes())
	return nil
}

// Get copies the variable.
func (v *Vars) Get(name string) (c *exec.Tensor, err error) {
	err = v.View(name, func(t *exec.Tensor) {
		c = exec.NewTensor(t.Type)
		copy(c.Bytes(), t.Bytes())
	})
	return c, err
}

// View calls f with the variable itself.
func (v *Vars) View(name string, f func(*exec.Tensor)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, ok := v.vals[name]
	if !ok {
		return fmt.Errorf("there is no variable %q", name)
	}
	f(t)
	return nil
}

func (v *Vars) tensor(name string) *exec.Tensor {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.vals[name]
}
