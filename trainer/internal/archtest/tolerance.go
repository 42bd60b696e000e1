package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// checkTolerances: a test asks whether what it got is near enough, and not whether it is too
// far: NaN, the commonest wrong number, is neither.
func checkTolerances(f *file) ([]Violation, error) {
	if !f.test && !strings.HasSuffix(path.Base(f.dir()), "test") || !bytes.Contains(f.src, []byte("math.Abs(")) {
		return nil, nil
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, f.path, f.src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []Violation
	ast.Inspect(tree, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.GTR && isDistance(b.X) {
			out = append(out, Violation{f.path, set.Position(n.Pos()).Line, "math.Abs(…) > …: NaN passes such a test; write !(math.Abs(…) <= …)"})
		}
		return true
	})
	return out, nil
}

// isDistance says whether x is a call of math.Abs.
func isDistance(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "math" && s.Sel.Name == "Abs"
}
