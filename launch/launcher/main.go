package launcher

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/outlet"
)

// Main is the main function of a launcher called name: it does run with an output
// that nobody's reading holds up, says what went wrong, and ends the process with
// the code of the job.
func Main(name string, run func(ctx context.Context, stdout, stderr *outlet.Writer) error) {
	// A reader that goes away (ddplaunch | head) must not kill the launcher:
	// writing then fails with an error, and the ranks are asked to stop.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	// Nor may one that stops reading hold it up.
	stdout, stderr := outlet.Pair(os.Stdout, os.Stderr)
	code := exitCode(name, run(context.Background(), stdout, stderr), stderr)
	_ = errors.Join(stdout.Flush(), stderr.Flush()) // there is nowhere left to say it
	os.Exit(code)
}

// exitCode prints err, unless it has been said, and returns the code: 0 done, 2 usage,
// the job's own, 128+n if signal n came before there was one, else 1.
func exitCode(name string, err error, stderr io.Writer) int {
	if e, ok := errors.AsType[Exit](err); ok && !joined(err) {
		return int(e)
	}
	return cliflag.Exit(name, err, stderr)
}

// joined says that err is several errors.
func joined(err error) bool {
	_, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // of err itself, not of what it wraps
	return ok
}
