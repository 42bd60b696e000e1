package cliflag

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/exitcode"
)

// UsageError is a mistake on the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes a UsageError.
func Usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrHelp means that help was asked for and shown.
var ErrHelp = errors.New("help was asked for")

// Parse parses args, long flags with one dash or two. Arguments that are
// not flags are mistakes. It shows help on out if asked.
func Parse(fs *pflag.FlagSet, args []string, out io.Writer, help string) error {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SortFlags = false
	err := fs.Parse(Normalize(fs, args, true))
	if errors.Is(err, pflag.ErrHelp) {
		_, err := fmt.Fprintf(out, "%s\nFlags:\n%s", help, fs.FlagUsages())
		if err != nil {
			return err
		}
		return ErrHelp
	}
	if err != nil {
		return Usage("%w (see %s --help)", Explain(err), fs.Name())
	}
	if fs.NArg() > 0 {
		return Usage("unexpected argument %q: every setting of %s is a flag (see %s --help)", fs.Arg(0), fs.Name(), fs.Name())
	}
	return nil
}

// AsUsage makes err a UsageError; nil stays nil.
func AsUsage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// Exit is the exit code of a program that ended with err, which is shown on w
// as one line that begins with the program's name.
func Exit(program string, err error, w io.Writer) int {
	if err == nil || errors.Is(err, ErrHelp) {
		return exitcode.Done
	}
	fmt.Fprintf(w, "%s: %s\n", program, oneLine(err.Error()))
	if _, ok := errors.AsType[*UsageError](err); ok {
		return exitcode.Usage
	}
	if onlyStopped(err) {
		return exitcode.Requeue
	}
	return exitcode.Failed
}

// onlyStopped says that err is ErrStopped and nothing went wrong besides.
func onlyStopped(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err == ErrStopped
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyStopped(e) })
}

// oneLine joins the lines of joined errors.
func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }

// ErrStopped means stopped cleanly before the end.
var ErrStopped = errors.New("stopped before the end; the same command with --resume goes on")
