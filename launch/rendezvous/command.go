package rendezvous

import (
	"fmt"
	"slices"
	"strings"
)

// Command is what a launcher runs as its ranks. It must be the same on all nodes.
type Command struct {
	Program string // name of the file
	Digest  string // of its content
	Args    []string
}

// differs says how c differs from that of node 0, "" if not at all.
func (c Command) differs(first Command) string {
	switch {
	case c.Program != first.Program:
		return fmt.Sprintf("it runs %s, node 0 runs %s", c.Program, first.Program)
	case !slices.Equal(c.Args, first.Args):
		for i := range max(len(c.Args), len(first.Args)) {
			mine, theirs := argument(c.Args, i), argument(first.Args, i)
			if mine != theirs {
				return fmt.Sprintf("of %s it has %s, node 0 has %s: give the same command on all nodes", c.Program, mine, theirs)
			}
		}
	case c.Digest != first.Digest:
		return fmt.Sprintf("its %s is another build (%.12s) than that of node 0 (%.12s): run the same file on all nodes", c.Program, c.Digest, first.Digest)
	}
	return ""
}

// argument is argument i in words, with the one before it if that may be its flag.
func argument(args []string, i int) string {
	switch {
	case i >= len(args):
		return fmt.Sprintf("no argument %d", i+1)
	case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.HasPrefix(args[i], "-"):
		return fmt.Sprintf("%q", args[i-1]+" "+args[i])
	}
	return fmt.Sprintf("%q", args[i])
}
