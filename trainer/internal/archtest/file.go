package archtest

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strconv"
	"strings"
)

// file is what the rules ask about a Go file.
type file struct {
	path      string // relative to the root, with slashes
	name      string // of the package
	doc       string // package comment
	test      bool
	generated bool
	imports   []imported
	build     constraint.Expr // nil if there is none
	src       []byte
}

type imported struct {
	path string
	line int
}

func (f *file) dir() string { return path.Dir(f.path) }

// room is the top-level folder, "" for a file at the root.
func (f *file) room() string { return roomOf(f.path) }

func roomOf(p string) string {
	room, _, found := strings.Cut(p, "/")
	if !found {
		return ""
	}
	return room
}

func readFile(path, rel string) (*file, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{
		path: rel, name: tree.Name.Name, doc: tree.Doc.Text(), src: src,
		test: strings.HasSuffix(rel, "_test.go"), generated: ast.IsGenerated(tree),
	}
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		f.imports = append(f.imports, imported{p, set.Position(spec.Pos()).Line})
	}
	f.build, err = buildConstraint(tree)
	return f, err
}

// inspect shows every node of the file to wrong, if its source has a word at all, and
// returns what that says of some of them; "" is nothing.
func (f *file) inspect(word string, wrong func(ast.Node) string) (out []Violation, err error) {
	if !bytes.Contains(f.src, []byte(word)) {
		return nil, nil
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, f.path, f.src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if text := wrong(n); text != "" {
			out = append(out, Violation{f.path, set.Position(n.Pos()).Line, text})
		}
		return true
	})
	return out, nil
}

// buildConstraint is the //go:build line before the package clause.
func buildConstraint(tree *ast.File) (constraint.Expr, error) {
	for _, group := range tree.Comments {
		for _, c := range group.List {
			if c.Pos() < tree.Package && constraint.IsGoBuild(c.Text) {
				return constraint.Parse(c.Text)
			}
		}
	}
	return nil, nil
}

// tags lists the tags of a constraint.
func tags(x constraint.Expr) []string {
	switch x := x.(type) {
	case *constraint.TagExpr:
		return []string{x.Tag}
	case *constraint.NotExpr:
		return tags(x.X)
	case *constraint.AndExpr:
		return append(tags(x.X), tags(x.Y)...)
	case *constraint.OrExpr:
		return append(tags(x.X), tags(x.Y)...)
	}
	return nil
}

// needs says whether a file is built only if tag is given: no choice of the
// other tags satisfies its constraint without it.
func (f *file) needs(tag string) bool {
	if f.build == nil {
		return false
	}
	all := tags(f.build)
	for choice := range 1 << len(all) {
		on := func(t string) bool {
			for i, name := range all {
				if name == t {
					return choice>>i&1 == 1
				}
			}
			return false
		}
		if !on(tag) && f.build.Eval(on) {
			return false
		}
	}
	return true
}
