package cliflag

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/exitcode"
)

// OneRequest is the time within which signals of one kind are one: timeout(1) sends its
// own to the program and at once again to the program's group.
const OneRequest = 100 * time.Millisecond

// Stopped is that a signal ended a program before it had done its work. Exit makes the
// code of a death by that signal of it.
type Stopped struct {
	Signal syscall.Signal
	Rest   string // what there is of the work, as in "nothing was measured"
}

func (s *Stopped) Error() string {
	return fmt.Sprintf("stopped by %s: %s", unix.SignalName(s.Signal), s.Rest)
}

// Code is the exit code that tells of the signal.
func (s *Stopped) Code() int { return exitcode.Signal + int(s.Signal) }

// UntilSignal is parent until the first SIGINT, SIGTERM or SIGHUP, whose Stopped is then
// the cause; a second one, after OneRequest, has its default effect. Under nohup SIGHUP stays ignored. What
// a program ended with goes through end, which makes the Stopped of all errors that came
// after the signal, as they came of it, and gives the signals back.
func UntilSignal(parent context.Context, rest string) (_ context.Context, end func(error) error) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	listen(signals)
	done, watched := make(chan struct{}), make(chan struct{})
	var stopped *Stopped
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			stopped = &Stopped{number(s), rest}
			cancel(stopped)
		case <-done:
			return
		}
		select {
		case <-time.After(OneRequest):
			signal.Stop(signals)
		case <-done:
		}
	}()
	return ctx, func(err error) error {
		signal.Stop(signals)
		close(done)
		<-watched
		cancel(nil)
		if err != nil && stopped != nil {
			return stopped
		}
		return err
	}
}

// EndAtSignal has the first SIGINT, SIGTERM or SIGHUP end the process there and then, as
// these do, but with a sentence on w. It is for programs that have nothing to put in
// order. undo gives the signals back.
func EndAtSignal(program, rest string, w io.Writer) (undo func()) {
	signals := make(chan os.Signal, 1)
	listen(signals)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			os.Exit(Exit(program, &Stopped{number(s), rest}, w))
		case <-done:
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

// listen has the signals that end programs come in.
func listen(signals chan<- os.Signal) {
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) { // nohup
		signal.Notify(signals, unix.SIGHUP)
	}
}

func number(s os.Signal) syscall.Signal {
	n, _ := s.(syscall.Signal) // there are no others on Linux
	return n
}
