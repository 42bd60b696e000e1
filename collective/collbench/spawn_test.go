package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
)

// Of several ranks that fail one says why, as it said it, and nothing is said besides; what
// ends without a word is told of.
func TestOneRankSaysWhy(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'collbench: no memory' >&2; exit 1": "collbench: no memory\n",
		"kill -9 $$": "",
	} {
		var cmds []*exec.Cmd
		for range 3 {
			cmds = append(cmds, exec.CommandContext(t.Context(), "sh", "-c", script))
		}
		_, err := together(cmds)
		var shown, last strings.Builder
		err = asSaid(err, &shown)
		code := cliflag.Exit("collbench", err, &last)
		if shown.String() != want || code != 1 || (want == "") != strings.Contains(last.String(), "signal: killed") {
			t.Errorf("%s: code %d, shown %q and %q, want %q", script, code, shown.String(), last.String(), want)
		}
		if _, failed := errors.AsType[*failure](err); !failed {
			t.Errorf("%s: %v is no failure", script, err)
		}
	}
}
