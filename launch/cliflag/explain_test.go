package cliflag

import (
	"errors"
	"io"
	"testing"

	"github.com/spf13/pflag"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nope"}, "unknown flag --nope"},
		{[]string{"-nope"}, "unknown flag -nope"},
		{[]string{"-nope=3"}, "unknown flag -nope"},
		{[]string{"-hop", "-hope", "3"}, "unknown flag -hop"},
		{[]string{"-hope=3"}, "unknown flag -hope"},
		{[]string{"-count", "3", "-hope"}, "unknown flag -hope"},
		{[]string{"slope", "-hope"}, "unknown flag -hope"},
		{[]string{"--vait", "3"}, "unknown flag --vait: did you mean --bait or --wait?"},
		{[]string{"-seid", "3"}, "unknown flag -seid: did you mean --seed?"},
		{[]string{"--coutn", "3"}, "unknown flag --coutn: did you mean --count?"},
		{[]string{"-nproc", "2"}, "unknown flag -nproc: it is one of ddplaunch, and stands before the program, as in ddplaunch -nproc 2 train"},
		{[]string{"--rdzv_endpoint=a"}, "unknown flag --rdzv_endpoint: it is one of ddplaunch, and stands before the program, as in ddplaunch -nproc 2 train"},
		{[]string{"--count", "x"}, `--count "x": want a whole number`},
		{[]string{"--count", "99999999999999999999"}, `--count "99999999999999999999": want a whole number, and this is beyond what a program can count with`},
		{[]string{"--rate", "1e400"}, `--rate "1e400": want a number, and this is beyond what a program can count with`},
		{[]string{"--seed", "-1"}, `--seed "-1": want a whole number of at least 0`},
		{[]string{"-rate=fast"}, `--rate "fast": want a number`},
		{[]string{"--on=perhaps"}, `--on "perhaps": want true or false`},
		{[]string{"--wait", "3"}, `--wait "3": want a time such as 10s or 2m`},
		{[]string{"-name"}, "--name needs a value: want text"},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.SortFlags = false // as Parse has it
		fs.BoolP("help", "h", false, "")
		fs.Int("count", 0, "")
		fs.Uint64("seed", 0, "")
		fs.Float64("rate", 0, "")
		fs.Bool("on", false, "")
		fs.Duration("wait", 0, "")
		fs.String("name", "", "")
		fs.String("bait", "", "")
		err := fs.Parse(Normalize(fs, c.args, true))
		if err == nil {
			t.Errorf("%q was accepted", c.args)
			continue
		}
		if got := Explain(fs, c.args, err).Error(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.args, got, c.want)
		}
	}
	if other := errors.New("other"); !errors.Is(Explain(pflag.NewFlagSet("", 0), nil, other), other) {
		t.Error("another error was changed")
	}
}
