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
	text := s.head() + s.text() + "\n" + s.body.String()
	sum := sha256.Sum256([]byte(dialect + text))
	name := kind + "_" + hex.EncodeToString(sum[:8])
	named := func(t string) string { return strings.ReplaceAll(t, "NAME", name) }
	return Launch{
		Entry: name, Source: dialect + named(text), Grid: grid, args: s.params,
		text: parts{s.wide, s.helpers, named(s.text()), named(s.body.String())},
	}, nil
}

// parts are a kernel's text in parts, for a kernel that holds several as functions.
type parts struct {
	wide       bool // indices are of 64 bits
	helpers    []string
	args, body string
}

// head is the type of indices, and the helpers.
func (s *source) head() string {
	var b strings.Builder
	index, quot := "i32", "quot32"
	if s.wide {
		index, quot = "i64", "quot64"
	}
	fmt.Fprintf(&b, "\ntypedef %s idx;\nDEVICE idx QUOT(idx n, quot f) { return %s(n, f); }\n\n", index, quot)
	for _, h := range s.helpers {
		b.WriteString(h + "\n")
	}
	return b.String()
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
