package kernel

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
)

// dialect is the head of every kernel's text: what NVRTC is told of the dialect, and
// small functions.
//
//go:embed dialect.h
var dialect string

// source is a kernel's text under construction.
type source struct {
	params
	helpers []string // functions of the kernel, each once, in the order of use
	known   map[string]bool
	body    strings.Builder
	wide    bool // indices are of 64 bits
}

// line writes a line of the body.
func (s *source) line(format string, args ...any) {
	fmt.Fprintf(&s.body, format+"\n", args...)
}

// helper adds a function to the text, unless it is there.
func (s *source) helper(text string) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	if !s.known[text] {
		s.known[text] = true
		s.helpers = append(s.helpers, text)
	}
}

// launch is the kernel called on a grid; kind begins its name. In the body, NAME
// stands for the name.
func (s *source) launch(kind string, grid int) (Launch, error) {
	if grid < 1 || grid > math.MaxInt32 {
		return Launch{}, fmt.Errorf("%s kernel: no device takes a grid of %d blocks", kind, grid)
	}
	if s.size > maxArgs {
		return Launch{}, fmt.Errorf("%s kernel: its argument takes %d bytes, and a kernel takes %d", kind, s.size, maxArgs)
	}
	var b strings.Builder
	index, quot := "i32", "quot32"
	if s.wide {
		index, quot = "i64", "quot64"
	}
	fmt.Fprintf(&b, "\ntypedef %s idx;\nDEVICE idx QUOT(idx n, quot f) { return %s(n, f); }\n\n", index, quot)
	for _, h := range s.helpers {
		b.WriteString(h + "\n")
	}
	b.WriteString(s.text() + "\n" + s.body.String())
	sum := sha256.Sum256([]byte(dialect + b.String()))
	name := kind + "_" + hex.EncodeToString(sum[:8])
	return Launch{Entry: name, Source: dialect + strings.ReplaceAll(b.String(), "NAME", name), Grid: grid, args: s.params}, nil
}

// maxArgs is the size of a kernel's argument in bytes at most.
const maxArgs = 4096

// maxNarrow bounds the elements of arrays that 32-bit indices reach: what a grid
// counts beyond them stays below 2^31.
const maxNarrow = 1<<31 - 1<<24

// wideFor says whether arrays with so many elements need 64-bit indices.
func (m *making) wideFor(elements ...int) bool {
	wide := m.wide
	for _, n := range elements {
		wide = wide || n > maxNarrow
	}
	return wide
}

// blocks is the number of blocks for so many threads.
func blocks(threads int) int { return ceil(threads, Block) }

func ceil(n, d int) int { return (n + d - 1) / d }
