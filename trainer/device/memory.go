package device

import (
	"fmt"

	"golang.org/x/sys/unix"

	"ebtrain/ddp/graph"
)

// Memory is the memory of this machine, in bytes.
func Memory() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("how much memory there is: %w", err)
	}
	return int64(info.Totalram * uint64(info.Unit)), nil
}

// CheckMemory reports a program that cannot run here because one of its values
// alone takes more than half the memory of this machine; smaller names the flags that
// make it smaller. A program that passes may still need too much.
func CheckMemory(g *graph.Graph, smaller string) error {
	have, err := Memory()
	if err != nil {
		return err
	}
	return checkMemory(g, uint64(have), smaller)
}

func checkMemory(g *graph.Graph, have uint64, smaller string) error {
	var largest graph.Type
	for i := range g.NumValues() {
		if t := g.Type(graph.ID(i)); t.DType != 0 && t.Bytes() > bytes(largest) {
			largest = t
		}
	}
	if need := uint64(bytes(largest)); need > have/2 { // never one value alone
		return fmt.Errorf("one value of the program, %v, takes %.1f GiB, and this machine has %.1f GiB of memory: choose a smaller %s",
			largest, gib(need), gib(have), smaller)
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

func gib(n uint64) float64 { return float64(n) / (1 << 30) }
