package supervise

import (
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
)

// crashCode is how the Go runtime ends a program that panics or gets a fatal signal. It
// is also the code of a mistake on the command line, so the trace has to tell.
const crashCode = exitcode.Usage

// maxCrash is how many bytes are kept of what a program has panicked with.
const maxCrash = 300

var (
	crashHead   = regexp.MustCompile(`(panic|fatal error|SIG[A-Z0-9]+): `)
	crashSignal = regexp.MustCompile(`^\[signal (SIG[A-Z0-9]+): `)
	crashStack  = regexp.MustCompile(`^(goroutine \d+ .*\[|runtime stack:)`)
)

// The limits of the system's that end a program of Go's wherever it meets them: its runtime
// says so, and crashes.
const (
	noThread = "it could start no more threads: allow it more (ulimit -u, ulimit -v, or the limit of processes of its container)"
	noMemory = "the system gave it no more memory: allow it more (ulimit -v, or vm.overcommit_memory)"
)

// limits are what the runtime says of them in front of its trace.
var limits = map[string]string{
	"pthread_create failed: ":                 noThread,
	"runtime: failed to create new OS thread": noThread,
	"runtime: out of memory: ":                noMemory,
}

// crash finds in the lines that a rank writes to standard error the trace with which the
// Go runtime ends a program:
//
//	SIGSEGV: segmentation violation
//	PC=0x4b71e0 m=0 sigcode=1 addr=0x0
//
//	goroutine 1 gp=0xc0000021c0 m=0 mp=0x5b58a0 [running]:
//
// or "panic: ..." or "fatal error: ..." and then, perhaps, "[signal SIGSEGV: ...". The
// trace begins behind what the program has left of a line, such as its progress; more
// lines of a panic's words, and a panic within another, begin with a tab. The last trace
// counts: an earlier one was not the end. Its methods may be called from any goroutine.
type crash struct {
	mu     sync.Mutex
	head   string // how the trace begins, if it is one
	signal string // named below it
	whole  bool   // it is one: a stack follows
	limit  string // that was met, in words; "" if none was
}

// line takes the next line of the stream.
func (c *crash) line(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for said, limit := range limits {
		if strings.Contains(text, said) {
			c.limit = limit
		}
	}
	begun := c.head != "" && !c.whole
	m := crashSignal.FindStringSubmatch(text)
	switch at := crashHead.FindStringIndex(text); {
	case begun && m != nil:
		c.signal = m[1]
	case begun && crashStack.MatchString(text):
		c.whole = true
	case at != nil && m == nil && !strings.HasPrefix(text, "\t"):
		head := text[at[0]:]
		c.head, c.signal, c.whole = head[:min(len(head), maxCrash)], "", false
	}
}

// explain puts into e what the trace says of the end of the rank: the signal that killed
// it, or the words of the runtime.
func (c *crash) explain(e *rendezvous.Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.whole || e.Code != crashCode && e.SignalNumber != int(unix.SIGABRT) { // GOTRACEBACK=crash
		return
	}
	kind, _, _ := strings.Cut(c.head, ": ")
	name := kind
	if kind == "fatal error" {
		name = c.signal
	}
	if n := unix.SignalNum(name); n != 0 {
		*e = rendezvous.Exit{Signal: name, SignalNumber: int(n), During: e.During}
		if c.limit != "" {
			e.Why = "killed by " + name + ": " + c.limit
		}
		return
	}
	*e = rendezvous.Exit{Code: exitcode.Failed, Crash: c.head, During: e.During}
	if c.limit != "" {
		e.Crash += ": " + c.limit
	}
}
