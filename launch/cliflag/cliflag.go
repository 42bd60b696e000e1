// Package cliflag lets command lines be typed the way people type them: a
// long flag works with one dash or two, and with dashes or underscores
// between its words, so that
//
//	ddplaunch -nproc 2 train --batch_size 64 -lr=1e-3
//
// means what it says. pflag alone reads -nproc as five one-letter flags.
//
// Parse reads a whole command line so and answers --help; Exit turns what a
// program ended with into its last line and its exit code, and UntilSignal has signals
// end it so that these say which.
//
// The package depends on pflag, levenshtein, x/sys/unix and launch/exitcode only and holds no
// state.
package cliflag

import (
	"strings"

	"github.com/spf13/pflag"
)

// Normalize returns args rewritten so that fs.Parse accepts them: every long
// flag that fs knows gets two dashes and the spelling it was declared with.
// What fs does not know is passed on untouched, so that pflag reports it as
// the user typed it. Values, the argument "--" and all that follows it are
// never changed.
//
// When interspersed is false, Normalize stops at the first argument that is
// neither a flag nor a flag's value: that is the program to start, and the
// rest is the program's. Give it what fs.SetInterspersed was given (pflag's
// default is true).
//
// A long flag is preferred to a group of one-letter flags: where both "tee"
// and "-t VALUE" exist, -tee is the flag "tee" and not -t with the value "ee".
func Normalize(fs *pflag.FlagSet, args []string, interspersed bool) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return append(out, args[i:]...)
		case len(arg) < 2 || arg[0] != '-':
			if !interspersed {
				return append(out, args[i:]...)
			}
			out = append(out, arg)
			continue
		}
		fixed, takesNext := one(fs, arg)
		out = append(out, fixed)
		if takesNext && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

// one rewrites a single argument that starts with a dash and says whether the
// next argument is its value.
func one(fs *pflag.FlagSet, arg string) (fixed string, takesNext bool) {
	body := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	name, value, hasValue := strings.Cut(body, "=")
	twoDashes := strings.HasPrefix(arg, "--")
	if f := long(fs, name, twoDashes); f != nil {
		if hasValue {
			return "--" + f.Name + "=" + value, false
		}
		return "--" + f.Name, f.NoOptDefVal == ""
	}
	if twoDashes {
		return arg, false
	}
	return arg, shortTakesNext(fs, body)
}

// long finds the long flag called name, in any spelling. A single letter
// after a single dash is a long flag only if no short flag has that letter.
func long(fs *pflag.FlagSet, name string, twoDashes bool) *pflag.Flag {
	if name == "" {
		return nil
	}
	if len(name) == 1 && !twoDashes && fs.ShorthandLookup(name) != nil {
		return nil
	}
	if f := fs.Lookup(name); f != nil {
		return f
	}
	if f := fs.Lookup(strings.ReplaceAll(name, "_", "-")); f != nil {
		return f
	}
	return fs.Lookup(strings.ReplaceAll(name, "-", "_"))
}

// shortTakesNext says whether a group of one-letter flags ("vt" of -vt) ends
// in one that takes the next argument as its value.
func shortTakesNext(fs *pflag.FlagSet, group string) bool {
	for i, c := range group {
		if c >= 0x80 {
			return false
		}
		f := fs.ShorthandLookup(string(c))
		if f == nil {
			return false
		}
		if f.NoOptDefVal == "" {
			return i == len(group)-1 // otherwise the rest of the group is the value
		}
	}
	return false
}
