package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// checkTolerances: a test asks whether what it got is near enough, and not whether it is too
// far: NaN, the commonest wrong number, is neither.
func checkTolerances(f *file) ([]Violation, error) {
	if !f.test && !strings.HasSuffix(path.Base(f.dir()), "test") {
		return nil, nil
	}
	return f.inspect("math.Abs(", func(n ast.Node) string {
		if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.GTR && isDistance(b.X) {
			return "math.Abs(…) > …: NaN passes such a test; write !(math.Abs(…) <= …)"
		}
		return ""
	})
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
