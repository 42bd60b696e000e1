package ref

import (
	"fmt"
	"sync"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// vars is a set of variables in host memory.
type vars struct {
	mu     sync.Mutex
	names  []string
	byName map[string]*exec.Tensor
}

func newVars() *vars { return &vars{byName: map[string]*exec.Tensor{}} }

func (v *vars) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.names...)
}

func (v *vars) Type(name string) (graph.Type, bool) {
	if t := v.lookup(name); t != nil {
		return t.Type, true
	}
	return graph.Type{}, false
}

func (v *vars) Set(name string, t *exec.Tensor) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	own, ok := v.byName[name]
	if !ok {
		own = exec.NewTensor(t.Type)
		v.byName[name] = own
		v.names = append(v.names, name)
	}
	if own.Type != t.Type {
		return fmt.Errorf("variable %q is %v and cannot be set to %v", name, own.Type, t.Type)
	}
	copy(own.Bytes(), t.Bytes())
	return nil
}

func (v *vars) Get(name string) (t *exec.Tensor, err error) {
	err = v.View(name, func(own *exec.Tensor) {
		t = exec.NewTensor(own.Type)
		copy(t.Bytes(), own.Bytes())
	})
	return t, err
}

func (v *vars) View(name string, f func(*exec.Tensor)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	own, ok := v.byName[name]
	if !ok {
		return fmt.Errorf("there is no variable %q", name)
	}
	f(own)
	return nil
}

// lookup is the memory of a variable, nil if there is none.
func (v *vars) lookup(name string) *exec.Tensor {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byName[name]
}
