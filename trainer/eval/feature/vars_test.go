package feature

import (
	"testing"

	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// variables are those of the features.
func (n Net) variables(t *testing.T) []nn.Variable {
	t.Helper()
	c := nn.NewContext(nn.Eval, 1)
	n.trunk.Features(c, c.Input(inputPictures, graph.T(graph.F32, 1, n.Size.C, n.Size.H, n.Size.W)))
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	return c.Variables()
}

// Digits are a device's, whatever it computed before and however many pictures at a time, and
// other devices have others.
func TestDigits(t *testing.T) {
	net := Random(2, Size{3, 16, 12})
	seen := map[string]string{}
	for name, b := range backends(t) {
		for _, before := range []int{0, 2, 4} {
			e, err := NewExtractor(b, net, max(1, before))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Of(t.Context(), nil, pictures(before, net.Size, 1)); err != nil {
				t.Fatal(err)
			}
			digits, err := e.Digits(t.Context())
			if by, ok := seen[digits]; err != nil || ok != (before > 0) || ok && by != name {
				t.Errorf("%s, after %d pictures: %s, %v; so far %v", name, before, digits, err, seen)
			}
			seen[digits] = name
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestEdition: features are what they were, or edition is another.
func TestEdition(t *testing.T) {
	net := Random(2, Size{3, 16, 12})
	e, err := NewExtractor(ref.New(), net, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // ref has nothing to release
	got, err := e.Of(t.Context(), nil, pictures(1, net.Size, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{0.0915136859, 0.1307288557, 0.0273416081}
	if some := []float64{got.X[0], got.X[20], got.X[111]}; !near(some, want, 1e-5) {
		t.Errorf("features are %v, want %v: raise edition, and write down here what they are now", some, want)
	}
}
