package device

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/launch/memory"
)

// Store is a memory that programs compute in.
type Store struct {
	Bytes int64
	// Of is whose it is, for people: "this machine", "GPU 3 (NVIDIA H200)".
	Of string
	// Own says that a rank has it for itself; this machine's, and a control group's, is
	// shared by the ranks on it.
	Own bool
}

// Sizer is a backend whose programs compute in another memory than this machine's.
type Sizer interface {
	// Memory is that memory.
	Memory() (Store, error)
}

// Memory is where programs of b compute: its own memory if it is a Sizer, else, and
// for nil, this machine's, or what of it the control group of this process may have: a
// container's, or a batch job's.
func Memory(b exec.Backend) (Store, error) {
	if s, ok := b.(Sizer); ok {
		return s.Memory()
	}
	r := memory.Open("")
	machine := r.Machine()
	if machine == 0 {
		return Store{}, errors.New("/proc/meminfo does not say how much memory this machine has: want its MemTotal")
	}
	return ofHost(machine, r.Limit()), nil
}

// ofHost is a machine's memory, or what a smaller limit leaves of it.
func ofHost(machine, limit int64) Store {
	if limit < machine {
		return Store{Bytes: limit, Of: "the control group of this process"}
	}
	return Store{Bytes: machine, Of: "this machine"}
}

// Share is what one of the ranks on this machine may take of it.
func (s Store) Share(ranks int) int64 {
	if s.Own {
		return s.Bytes
	}
	return s.Bytes / int64(ranks)
}

// CheckMemory reports a program that cannot run on b because one of its values
// alone takes more than half of b's Memory; smaller names the flags that make it
// smaller. A program that passes may still need too much.
func CheckMemory(b exec.Backend, g *graph.Graph, smaller string) error {
	have, err := Memory(b)
	if err != nil {
		return err
	}
	var largest graph.Type
	for i := range g.NumValues() {
		if t := g.Type(graph.ID(i)); t.DType != 0 && t.Bytes() > bytes(largest) {
			largest = t
		}
	}
	if need := int64(bytes(largest)); need > have.Bytes/2 { // never one value alone
		return fmt.Errorf("one value of the program, %v, takes %s, and %s has %s of memory: choose a smaller %s",
			largest, humanize.IBytes(uint64(need)), have.Of, humanize.IBytes(uint64(have.Bytes)), smaller)
	}
	return nil
}

// bytes is the size of a value; 0 for no type.
func bytes(t graph.Type) int {
	if t.DType == 0 {
		return 0
	}
	return t.Bytes()
}
