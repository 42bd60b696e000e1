package trained

import (
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/chain"
)

// room is the memory that programs of a model compute in.
type room struct {
	in      device.Store
	ranks   int    // that share it, if they do
	most    int64  // bytes that one program may take for its intermediate values
	smaller string // the flags that make programs smaller, for errors
}

// room is that of programs on b.
func (r *Run) room(b exec.Backend, smaller string) (room, error) {
	in, err := device.Memory(b)
	ranks := max(1, r.Ranks)
	return room{in: in, ranks: ranks, most: in.Share(ranks), smaller: smaller}, err
}

// besides is the room that a plan's own variables leave, each with a copy of it: the
// initial values, or the result.
func (m room) besides(p chain.Plan) (room, error) {
	whole := m.most
	for _, v := range p.Vars {
		m.most -= 2 * int64(v.Type.Bytes())
	}
	if m.most <= 0 {
		return m, m.doesNotFit("what is drawn", &exec.MemoryError{Need: whole - m.most, Max: whole})
	}
	return m, nil
}

func (m room) doesNotFit(what string, err error) error {
	return device.DoesNotFit(err, what, m.in, m.ranks, "choose a smaller "+m.smaller)
}

// compile compiles a graph, called name, that is held to the room.
func (m room) compile(b exec.Backend, name string, vars exec.Vars, g *graph.Graph) (exec.Program, error) {
	p, err := b.Compile(g, exec.Options{Name: name, Vars: vars, MaxBytes: m.most})
	if err != nil {
		return nil, m.doesNotFit(fmt.Sprintf("the program %q", name), err)
	}
	return p, nil
}
