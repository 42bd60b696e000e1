package cliflag

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"ebtrain/launch/exitcode"
)

// UsageError is a mistake on the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes a UsageError.
func Usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// AsUsage makes err a UsageError; nil stays nil.
func AsUsage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// within is an error of a part of a program that has a --help of its own.
type within struct {
	error
	part string
}

func (e within) Unwrap() error { return e.error }

// Within is err, and if that is a mistake on the command line, help is where the part of
// the program has it, such as "run" or "--algo bism"; "" is the program itself, and nil
// stays nil.
func Within(part string, err error) error {
	if err == nil || part == "" {
		return err
	}
	return within{err, part}
}

// listed is an error about a word, of which what there is is shown elsewhere than by --help.
type listed struct {
	error
	by string
}

func (e listed) Unwrap() error { return e.error }

// Listed is err, and if that is a mistake on the command line, the words that there are is
// what the program shows by the arguments by, as "--preset help" or "list".
func Listed(by string, err error) error { return listed{err, by} }

// Exit is the exit code of a program that ended with err, which is shown on w
// as one line that begins with the program's name; a mistake on the command line
// is followed by where help is. What Show has shown is not shown again.
func Exit(program string, err error, w io.Writer) int {
	if err == nil || errors.Is(err, ErrHelp) {
		return exitcode.Done
	}
	_, usage := errors.AsType[*UsageError](err)
	if more := notShown(err); more != nil {
		show(program, more, w, usage)
	}
	if usage {
		return exitcode.Usage
	}
	if onlyStopped(err) {
		return exitcode.Requeue
	}
	if s, ok := errors.AsType[*Stopped](err); ok {
		return s.Code()
	}
	return exitcode.Failed
}

// shown is an error that the user has read.
type shown struct{ error }

func (e shown) Unwrap() error { return e.error }

// Show shows err as Exit would, before the program has ended. What it returns is err for
// everybody but Exit, which leaves it out.
func Show(program string, err error, w io.Writer) error {
	_, usage := errors.AsType[*UsageError](err)
	show(program, err, w, usage)
	return shown{err}
}

func show(program string, err error, w io.Writer, usage bool) {
	text := oneLine(err.Error())
	if errors.Is(err, syscall.EMFILE) && !strings.Contains(text, "ulimit -n") {
		text += ": allow this program more of them (ulimit -n)"
	}
	if usage {
		text += fmt.Sprintf(" (see %s %s)", program, help(err))
	}
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, text) // there is nowhere else to say it
}

// help is what a program is to be given to show what may be said in place of what err, a
// mistake on the command line, is about.
func help(err error) string {
	if e, ok := errors.AsType[listed](err); ok {
		return e.by
	}
	if e, ok := errors.AsType[within](err); ok {
		return e.part + " --help"
	}
	return "--help"
}

// notShown is err without what Show has shown of it, nil if that is all.
func notShown(err error) error {
	switch e := err.(type) { //nolint:errorlint // what is wrapped besides must not be overlooked
	case shown:
		return nil
	case within:
		return Within(e.part, notShown(e.error))
	case interface{ Unwrap() []error }:
		if _, some := errors.AsType[shown](err); !some {
			return err
		}
		var rest []error
		for _, part := range e.Unwrap() {
			rest = append(rest, notShown(part))
		}
		return errors.Join(rest...)
	}
	return err
}

// onlyStopped says that err is ErrStopped and nothing went wrong besides.
func onlyStopped(err error) bool {
	if e, ok := err.(within); ok { //nolint:errorlint // as below
		return onlyStopped(e.error)
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what is wrapped besides ErrStopped must not be overlooked
	if !ok {
		return err == ErrStopped //nolint:errorlint // as above
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyStopped(e) })
}

// oneLine joins the lines of joined errors.
func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }

// ErrStopped means stopped cleanly before the end.
var ErrStopped = errors.New("stopped before the end; the same command with --resume goes on")
