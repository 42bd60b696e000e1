package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
)

// TestParse: a flag that makes no sense is refused before the first check, which may be minutes
// before the one that would trip over it, with a sentence that names it.
func TestParse(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"--part=a,e", `unknown --part "e"`},
		{"--precision=f16", `unknown --precision "f16"`},
		{"--net=conv32,conv16", `--net: unknown networks "conv16": want one of`},
		{"--batch=64,0", "want a --batch of at least 1, got 0"},
		{"--lanes=-1", "want --lanes of at least 1, or 0"},
		{"--steps=1", "--steps of at least 2, got 10m0s, 5m0s and 1"},
		{"--limit=0s", "want --limit and --each above 0"},
		{"--each=-1s", "want --limit and --each above 0"},
		{"--size={", "unexpected end of JSON"},
		{"--nets=conv32", "unknown flag"},
	} {
		_, err := parse([]string{c.arg}, io.Discard)
		var usage *cliflag.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a usage error that says %q", c.arg, err, c.want)
		}
	}
	o, err := parse([]string{"--net=resnet32", "--batch=1", "--steps=2", "--precision=tf32", "--part=d"}, io.Discard)
	if err != nil || o.steps != 2 || o.from != -1 || o.size.Product != full.Product {
		t.Errorf("got %+v, %v", o, err)
	}
}
