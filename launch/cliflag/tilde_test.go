package cliflag

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A home that the shell has left as it was typed is no name of a folder.
func TestTilde(t *testing.T) {
	for args, want := range map[string]string{
		"--out=~/runs/a":         `--out "~/runs/a": a shell does not replace ~ behind "=" or in quotes: write --out ~/runs/a, or --out="$HOME/runs/a"; a folder of that name is ./~/runs/a`,
		"--src=a,~/b":            `--src "~/b": `,
		"--out=./~/a":            "",
		"--out=~a --src=a~/b":    "",
		"--out /home/me/~/a":     "",
		"--help --out=~/runs/a ": "help was asked for",
	} {
		fs := pflag.NewFlagSet("p", pflag.ContinueOnError)
		fs.String("out", "~/.cache", "where") // a default is no matter of the shell's
		fs.StringSlice("src", nil, "what")
		err := Program{Name: "p"}.Parse(fs, strings.Fields(args), io.Discard)
		_, usage := errors.AsType[*UsageError](err)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) || usage != strings.Contains(want, "~") {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}
