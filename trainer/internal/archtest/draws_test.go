package archtest

import (
	"strings"
	"testing"
)

func TestDrawsAreNamed(t *testing.T) {
	for _, tt := range []struct {
		text string
		fine bool
	}{
		{"philox.Name{Seed: 1, Purpose: philox.Sampling, Sub: philox.SamplingSeed}", true},
		{"philox.Name{Seed: 1, Purpose: philox.Sampling, Sub: sub}", true},
		{"philox.Name{Seed: 1, Purpose: philox.Testing, Sub: 7}", true},
		{"c.Draw(key, graph.Normal, philox.Latent, 7, t)", true},
		{"c.Draw(key, graph.Normal, philox.Sampling, philox.SamplingLatents, t)", true},
		{"philox.Name{Seed: 1, Purpose: philox.Sampling, Sub: 7}", false},
		{"philox.Name{Purpose: philox.DataOrder, Step: 7}", false},
		{"philox.Name{Purpose: philox.DataOrder, Sub: philox.SamplingSeed}", false},
		{"c.Draw(key, graph.Normal, philox.Augment, 7, t)", false},
	} {
		text := lib("loader") + "\nvar _ = " + tt.text + "\n"
		got, err := Check(tree(t, map[string]string{"data/loader/a.go": text}))
		if err != nil {
			t.Fatal(err)
		}
		if fine := len(got) == 0; fine != tt.fine || !fine && (got[0].Line != 4 || !strings.Contains(got[0].Text, "whose sub is no name")) {
			t.Errorf("%s: violations %v", tt.text, got)
		}
		got, err = Check(tree(t, map[string]string{"data/loader/a.go": lib("loader"), "data/loader/a_test.go": text}))
		if err != nil || len(got) != 0 {
			t.Errorf("%s in a test: violations %v, %v", tt.text, got, err)
		}
	}
}
