package randomgraph

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"ebtrain/ddp/graph"
)

// Found is a program that fails, made small.
type Found struct {
	Seed    uint64
	Err     error
	Program *Program
}

// String is the failure and the program as text.
func (f *Found) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "seed %d: %v\n%d ranks, %d steps", f.Seed, f.Err, f.Program.Ranks, f.Program.Steps)
	if f.Program.wild != tamed {
		fmt.Fprintf(&b, ", with %v", f.Program.wild)
	}
	if s := f.Program.Shards; s != nil {
		fmt.Fprintf(&b, ", %d virtual shards; the graph of one", s.Virtual)
		if err := f.Program.local.Dump(&b); err != nil {
			fmt.Fprintln(&b, err)
		}
		return b.String()
	}
	fmt.Fprintln(&b)
	if err := f.Program.Graph.Dump(&b); err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

// Count is what a hunt has seen.
type Count struct {
	Programs int
	Nodes    int    // of all programs
	Ranks    int    // programs on two ranks
	Shards   int    // programs of virtual shards
	Assigns  int    // programs that assign variables
	Wild     int    // programs with values that are not near 1
	Orders   [4]int // programs by the highest order of their derivatives
	Ops      map[string]int
}

// Hunt checks the programs of seeds from seed on, until end or so many, and calls
// found with what fails; it goes on unless that says no.
func (c *Checker) Hunt(seed uint64, programs int, end time.Time, l Limits, found func(*Found) bool) (Count, error) {
	var n Count
	for i := 0; (programs == 0 || i < programs) && (end.IsZero() || time.Now().Before(end)); i++ {
		p, err := Grow(FromSeed(seed+uint64(i)), l)
		if err != nil {
			return n, fmt.Errorf("seed %d: a graph that should be possible is refused: %w", seed+uint64(i), err)
		}
		n.add(p)
		if err := c.safely(p); err != nil {
			f := &Found{Seed: seed + uint64(i), Err: err, Program: p}
			if !fatal(err) {
				f.Program, f.Err = c.shrink(p, err, time.Minute)
			}
			if !found(f) || fatal(err) {
				return n, nil
			}
		}
	}
	return n, nil
}

// Test is Hunt in a test, which fails by what is found; with -v it goes on after that. It
// ends after a time, 0 for no limit, or so many programs, 0 for no limit.
func (c *Checker) Test(t testing.TB, seed uint64, programs int, long time.Duration, l Limits) {
	t.Helper()
	var end time.Time
	if long > 0 {
		end = time.Now().Add(long)
	}
	n, err := c.Hunt(seed, programs, end, l, func(f *Found) bool {
		t.Error(f)
		return testing.Verbose()
	})
	t.Logf("%+v", n)
	if err != nil {
		t.Error(err)
	}
}

func (n *Count) add(p *Program) {
	n.Programs++
	n.Nodes += len(p.Graph.Nodes())
	if p.Ranks > 1 {
		n.Ranks++
	}
	if p.Shards != nil {
		n.Shards++
	}
	if p.wild != tamed {
		n.Wild++
	}
	if len(p.Graph.Assigns()) > 0 {
		n.Assigns++
	}
	if n.Ops == nil {
		n.Ops = map[string]int{}
	}
	order := 0
	for i, live := range p.Graph.Live() {
		if node := p.Graph.Nodes()[i]; live {
			n.Ops[opName(node.Op)]++
			order = max(order, strings.Count(node.Scope, "'"))
		}
	}
	n.Orders[min(order, 3)]++
}

// opName is the name of an op, without its parameters.
func opName(op graph.Op) string {
	name, _, _ := strings.Cut(fmt.Sprint(op), "{")
	name, _, _ = strings.Cut(name, " ")
	name, _, _ = strings.Cut(name, "[")
	return name
}

// safely is Check, a panic being an error.
func (c *Checker) safely(p *Program) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return c.Check(p)
}
