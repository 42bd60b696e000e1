package archtest

import (
	"fmt"
	"go/ast"
	"strings"
)

// sharedPurposes are the purposes of random draws that several packages draw for.
var sharedPurposes = []string{"Sampling", "DataOrder", "Augment"}

// checkDraws: who draws for a purpose that others draw for, too, says by a name of package
// philox which draws they are; numbers in several packages would come to be the same.
// Tests may have numbers.
func checkDraws(f *file) ([]Violation, error) {
	if f.test || inside(f.path, "ddp/philox") {
		return nil, nil
	}
	return f.inspect("philox.", func(n ast.Node) string {
		purpose, sub := drawn(n)
		if purpose == "" || named(sub, purpose) {
			return ""
		}
		return fmt.Sprintf("draws of purpose %s, whose sub is no name philox.%s…: several packages draw for it, and draws that are told apart by numbers of each would come to be the same; name it in ddp/philox/subs.go", purpose, purpose)
	})
}

// drawn is the shared purpose of a philox.Name or a call of Draw, and its sub, which may be
// nil; "" for another expression or purpose.
func drawn(n ast.Node) (purpose string, sub ast.Expr) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key, _ := pair.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "Purpose":
				purpose = shared(pair.Value)
			case key.Name == "Sub":
				sub = pair.Value
			}
		}
	case *ast.CallExpr:
		for i, arg := range n.Args[:max(0, len(n.Args)-1)] {
			if p := shared(arg); p != "" {
				return p, n.Args[i+1]
			}
		}
	}
	return purpose, sub
}

// shared is the shared purpose that x is, or "".
func shared(x ast.Expr) string {
	for _, p := range sharedPurposes {
		if selected(x) == p {
			return p
		}
	}
	return ""
}

// named says whether a sub is one of the purpose's names, or comes by a variable from
// whoever named it.
func named(sub ast.Expr, purpose string) bool {
	if _, ok := sub.(*ast.Ident); ok {
		return true
	}
	rest, ok := strings.CutPrefix(selected(sub), purpose)
	return ok && rest != ""
}

// selected is X of philox.X, or "".
func selected(x ast.Expr) string {
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if p, ok := s.X.(*ast.Ident); !ok || p.Name != "philox" {
		return ""
	}
	return s.Sel.Name
}
