package archtest

import (
	"strings"
	"testing"
)

func TestTolerances(t *testing.T) {
	for _, tt := range []struct {
		file, text string
		fine       bool
	}{
		{"data/loader/a_test.go", "!(math.Abs(x) <= 1)", true},
		{"data/loader/a_test.go", "math.Abs(x) > 1", false},
		{"data/loader/a_test.go", "x > 1 || math.Abs(x-y) > 1e-9*y", false},
		{"data/loader/a_test.go", "cmplx.Abs(x) > 1", true},
		{"data/loader/a.go", "math.Abs(x) > 1", true},
		{"data/loadertest/a.go", "math.Abs(x) > 1", false},
	} {
		pkg := "loader"
		if strings.Contains(tt.file, "loadertest") {
			pkg = "loadertest"
		}
		files := map[string]string{"data/loader/b.go": lib("loader"), tt.file: lib(pkg) + "\nvar _ = " + tt.text + "\n"}
		got, err := Check(tree(t, files))
		if err != nil {
			t.Fatal(err)
		}
		if fine := len(got) == 0; fine != tt.fine || !fine && (got[0].Line != 4 || !strings.Contains(got[0].Text, "NaN")) {
			t.Errorf("%s of %s: violations %v", tt.text, tt.file, got)
		}
	}
}
