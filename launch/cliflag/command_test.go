package cliflag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"
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
		{"usage", Usage("want --n, got %d", 1), 2, "prog: want --n, got 1 (see prog --help)\n"},
		{"usage inside", fmt.Errorf("a: %w", Usage("b")), 2, "prog: a: b (see prog --help)\n"},
		{"usage of a part", Within("run", Usage("b")), 2, "prog: b (see prog run --help)\n"},
		{"usage of no part", Within("", Usage("b")), 2, "prog: b (see prog --help)\n"},
		{"usage of a word of a list", Listed("--preset help", Usage("b")), 2, "prog: b (see prog --preset help)\n"},
		{"usage of a word of a list, in a part", Within("run", Listed("list", Usage("b"))), 2, "prog: b (see prog list)\n"},
		{"a list that is not there", Listed("list", errors.New("no luck")), 1, "prog: no luck\n"},
		{"a part failed", Within("run", errors.New("no luck")), 1, "prog: no luck\n"},
		{"a part has done", Within("run", nil), 0, ""},
		{"help of a part", Within("run", ErrHelp), 0, ""},
		{"a part was stopped", Within("run", ErrStopped), 75, "prog: " + ErrStopped.Error() + "\n"},
		{"shown before, by a part", Within("run", errors.Join(Show("prog", errors.New("no luck"), io.Discard))), 1, ""},
		{"shown before, by a part, and more", Within("run", errors.Join(Show("prog", errors.New("no luck"), io.Discard), Usage("b"))), 2, "prog: b (see prog run --help)\n"},
		{"stopped", errors.Join(ErrStopped), 75, "prog: " + ErrStopped.Error() + "\n"},
		{"stopped and worse", errors.Join(ErrStopped, errors.New("disk full")), 1, "prog: " + ErrStopped.Error() + "; disk full\n"},
		{"several lines", errors.Join(errors.New("a"), errors.New("b\n")), 1, "prog: a; b\n"},
		{"too many files", &fs.PathError{Op: "open", Path: "f", Err: syscall.EMFILE}, 1, "prog: open f: too many open files: allow this program more of them (ulimit -n)\n"},
		{"too many files, and what to do", fmt.Errorf("%w: see ulimit -n", syscall.EMFILE), 1, "prog: too many open files: see ulimit -n\n"},
		{"shown before", Show("prog", errors.New("no luck"), io.Discard), 1, ""},
		{"shown before, with nothing besides", errors.Join(Show("prog", errors.New("no luck"), io.Discard), nil), 1, ""},
		{"shown before, and more", errors.Join(errors.Join(Show("prog", errors.New("no luck"), io.Discard), errors.New("disk full")), errors.New("a")), 1, "prog: disk full; a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if code := Exit("prog", c.err, &b); code != c.code || b.String() != c.want {
				t.Errorf("got %d, %q, want %d, %q", code, b.String(), c.code, c.want)
			}
		})
	}
}

// TestShow: what is shown early looks as it would at the end, and is the same error.
func TestShow(t *testing.T) {
	var b strings.Builder
	failure := errors.New("no\nluck")
	if err := Show("prog", failure, &b); !errors.Is(err, failure) || err.Error() != failure.Error() || b.String() != "prog: no; luck\n" {
		t.Errorf("shown as %q, became %v", b.String(), err)
	}
	b.Reset()
	if err := Show("prog", Usage("no"), &b); Exit("prog", err, &b) != 2 || b.String() != "prog: no (see prog --help)\n" {
		t.Errorf("a mistake is shown as %q", b.String())
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-n 3", ""},
		{"--too_long=3", ""},
		{"-too-long 3", ""},
		{"-h", ErrHelp.Error()},
		{"--help", ErrHelp.Error()},
		{"-n x", `--n "x": want a whole number`},
		{"--n", `--n needs a value: want a whole number`},
		{"more", `unexpected argument "more": every setting of prog is a flag`},
	} {
		fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
		n := fs.Int("n", 0, "number")
		fs.IntVar(n, "too-long", 0, "same number")
		var out strings.Builder
		err := Program{Name: "prog", About: "what it does\n"}.Parse(fs, strings.Fields(c.args), &out)
		if err == nil && (c.want != "" || *n != 3) || err != nil && err.Error() != c.want {
			t.Errorf("%q: got %v, n is %d, want %q", c.args, err, *n, c.want)
		}
		if _, usage := errors.AsType[*UsageError](err); usage != (err != nil && !errors.Is(err, ErrHelp)) {
			t.Errorf("%q: %v is a mistake: %v", c.args, err, usage)
		}
		if help := strings.HasPrefix(out.String(), "what it does\n\nFlags:\n"); help != errors.Is(err, ErrHelp) {
			t.Errorf("%q: shows %q", c.args, out.String())
		}
		if got := Values(fs); len(got) != 2 || got["n"] != fmt.Sprint(*n) {
			t.Errorf("%q: values are %v", c.args, got)
		}
	}
}

// A program that starts another leaves what follows its name to that.
func TestParseStops(t *testing.T) {
	fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	err := Program{Name: "prog", Args: "PROGRAM", Stops: true}.Parse(fs, []string{"other", "--help", "-n"}, nil)
	if err != nil || strings.Join(fs.Args(), " ") != "other --help -n" {
		t.Errorf("%v, arguments %v", err, fs.Args())
	}
}

func TestHelp(t *testing.T) {
	fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	fs.Int("n", 3, "number of things")
	fs.StringP("a-name-that-is-long", "l", "", strings.Repeat("seven77 ", 12)+"end")
	fs.Int("wide", 77, strings.Repeat("x", 50))
	fs.Bool("new", false, "in no group yet")
	var out strings.Builder
	p := Program{Name: "prog", About: "prog does it.\n\n  prog --n 4\n", Groups: []Group{{"Numbers", []string{"n", "wide"}}, {"None of these", []string{"other"}}, {"Names", []string{"a-name-that-is-long"}}}}
	if err := p.Parse(fs, []string{"-help"}, &out); !errors.Is(err, ErrHelp) {
		t.Fatal(err)
	}
	const want = `prog does it.

  prog --n 4

Numbers:
      --n int           number of things (default 3)
      --wide int        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                        (default 77)

Names:
  -l, --a-name-that-is-long string
                        seven77 seven77 seven77 seven77 seven77 seven77 seven77
                        seven77 seven77 seven77 seven77 seven77 end

Other:
      --new             in no group yet
  -h, --help            show this help
      --version         show the version
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "ebtrain", Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	if got, want := version("prog", info), "prog of ebtrain v1.2.3, commit abc with changes, go1.26 "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q and the platform", got, want)
	}
	fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	var out strings.Builder
	if err := (Program{Name: "prog"}).Parse(fs, []string{"--version"}, &out); !errors.Is(err, ErrHelp) || out.String() != Version("prog")+"\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
