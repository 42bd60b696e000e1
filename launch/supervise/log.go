package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ebtrain/launch/outlet"
)

const (
	// fileWait is how long the launcher lets a file hold it up: that may be on a disk of
	// another machine.
	fileWait = 500 * time.Millisecond
	// lastWait is the same at the end of a rank or a job, when there is nothing else to do.
	lastWait = 5 * time.Second
)

// within does f with a file, which may wait for a disk; after d it goes on alone.
func within(d time.Duration, file string, f func() error) error {
	over := make(chan error, 1)
	go func() { over <- f() }()
	select {
	case err := <-over:
		return err
	case <-time.After(d):
		return fmt.Errorf("%s: the disk does not answer", file)
	}
}

// logFile is the file of one rank, to which both its streams write lines. Nobody waits for
// a disk that does not take any: from an outlet lines go there when it does.
type logFile struct {
	out    *outlet.Writer
	opened chan struct{} // closed when the following are known
	f      *os.File
	err    error

	say  func(text string)
	once sync.Once // for say
}

// openLog appends to rank-N.out, so that a restarted or resumed rank goes on
// where it was. A rank that writes a rank-N.log itself has it for itself, also if
// its folder is the same. What becomes of a file that is not open at until, or of lines
// that it does not take, is told to say, once.
func openLog(dir string, rank int, until time.Time, say func(text string)) (*logFile, error) {
	l := &logFile{opened: make(chan struct{}), say: say}
	l.out = outlet.New(l)
	go func() {
		l.f, l.err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("rank-%d.out", rank)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		close(l.opened)
	}()
	select {
	case <-l.opened:
		if l.err != nil {
			l.out.Close()
			return nil, fmt.Errorf("log of rank %d: %w", rank, l.err)
		}
	case <-time.After(time.Until(until)):
	}
	return l, nil
}

// Write writes to the file once it is open. It is for the outlet.
func (l *logFile) Write(p []byte) (int, error) {
	if <-l.opened; l.err != nil {
		return 0, l.err
	}
	return l.f.Write(p)
}

// line takes a line of the rank, which it slows down if it writes faster than the disk
// takes it.
func (l *logFile) line(text string) {
	defer l.out.Turn()() // the rank's other stream comes here, too
	if _, err := l.out.Write([]byte(text + "\n")); err != nil {
		l.once.Do(func() { l.say(err.Error() + ": its output goes on without it") })
	}
}

// flush waits for the lines to be written, as long as the disk takes any.
func (l *logFile) flush() {
	for end := time.Now().Add(lastWait); l.out.Flush() == nil && l.out.Waits() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	switch err := l.out.Flush(); {
	case err != nil:
		l.once.Do(func() { l.say(err.Error() + ": its last lines are lost") })
	case l.out.Waits():
		l.once.Do(func() { l.say("the disk does not answer: its last lines may be lost") })
	}
}

// close closes the file, unless it holds up what is still to be written.
func (l *logFile) close() error {
	l.out.Close()
	if l.out.Waits() {
		return nil
	}
	return within(fileWait, "a rank's log", func() error {
		if <-l.opened; l.f == nil {
			return nil // why has been told, if there was a line
		}
		return l.f.Close()
	})
}
