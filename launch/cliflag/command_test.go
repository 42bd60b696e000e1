package cliflag

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"done", nil, 0, ""},
		{"help", ErrHelp, 0, ""},
		{"failed", errors.New("no luck"), 1, "prog: no luck\n"},
		{"usage", Usage("want --n, got %d", 1), 2, "prog: want --n, got 1\n"},
		{"usage inside", fmt.Errorf("a: %w", Usage("b")), 2, "prog: a: b\n"},
		{"stopped", errors.Join(ErrStopped), 75, "prog: " + ErrStopped.Error() + "\n"},
		{"stopped and worse", errors.Join(ErrStopped, errors.New("disk full")), 1, "prog: " + ErrStopped.Error() + "; disk full\n"},
		{"several lines", errors.Join(errors.New("a"), errors.New("b\n")), 1, "prog: a; b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if code := Exit("prog", c.err, &b); code != c.code || b.String() != c.want {
				t.Errorf("got %d, %q, want %d, %q", code, b.String(), c.code, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-n 3", ""},
		{"--too_long=3", ""},
		{"-too-long 3", ""},
		{"-h", ErrHelp.Error()},
		{"-n x", `--n "x": want a whole number (see prog --help)`},
		{"more", `unexpected argument "more": every setting of prog is a flag (see prog --help)`},
	} {
		fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
		n := fs.Int("n", 0, "number")
		fs.IntVar(n, "too-long", 0, "same number")
		var out strings.Builder
		err := Parse(fs, strings.Fields(c.args), &out, "help\n")
		if err == nil && (c.want != "" || *n != 3) || err != nil && err.Error() != c.want {
			t.Errorf("%q: got %v, n is %d, want %q", c.args, err, *n, c.want)
		}
		if help := strings.HasPrefix(out.String(), "help\n\nFlags:\n"); help != (c.args == "-h") {
			t.Errorf("%q: shows %q", c.args, out.String())
		}
	}
}
