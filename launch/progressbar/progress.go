// Package progressbar shows how a long piece of work goes: on a terminal one
// line that is drawn over and over,
//
//	step 120/300 [=======>          ] 40%  energy -0.312  845 images/s  1m02s left
//
// and elsewhere (a file, a pipe, a job's log) the same without the bar, as a
// line every so many seconds or steps. Where the line is too long for the
// terminal it loses its numbers, then its words; the bar, the rate and the time
// left stay from 60 columns on, and no line wraps.
//
// Rank 0 alone makes a Reporter. The nil Reporter shows nothing, so a loop
// calls Step and Close on every rank alike. Logs on the same terminal go
// through the Reporter's Write, which keeps them above the bar. Phases is a
// Reporter for each phase of a program that has several.
//
// Rates are averages over about the last 15 seconds, from the second step on:
// the first one often includes making memory and programs. Time comes from the
// caller's clock. A Reporter may be used from any goroutine.
package progressbar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	redraw       = 100 * time.Millisecond // between two drawings of the bar
	defaultEvery = 10 * time.Second       // between two plain lines
	unknownWidth = 72                     // columns: 80, less a launcher's prefix
)

// Config says where and how to show progress.
type Config struct {
	Out      io.Writer
	Terminal bool             // bar, or plain lines
	Width    func() int       // columns of the terminal, asked at each drawing; nil or 0: unknown
	Label    string           // before the number of steps
	Unit     string           // of the rate: "images/s"
	Start    int64            // steps done before this start: "-" in the bar
	Total    int64            // steps of the whole run; negative: unknown
	Every    time.Duration    // plain lines at least this far apart; 0: 10 s
	Steps    int64            // plain: a line every so many steps, however long they take; 0: by time
	Late     bool             // plain: no line for work that takes less than Every
	Now      func() time.Time // nil: time.Now
}

// Update is what a step has to say.
type Update struct {
	Step    int64              // number of the step just done, from 0
	Images  int64              // counted in Unit, since the last Update
	Losses  map[string]float64 // shown sorted by name, now or at Close
	Caption string             // shown before the losses, if not empty: "epoch 3"
}

// Reporter shows progress.
type Reporter struct {
	mu    sync.Mutex
	c     Config
	rate  rate
	last  Update
	any   bool      // a step has been reported
	begun time.Time // when New was called
	due   bool      // the last step has not been shown
	shown time.Time // when something was shown
	bar   string    // what stands on the terminal's last line
	short int       // words that it leaves out
	wide  int       // columns that it was drawn for
	err   error     // the first error of writing
}

// New returns a Reporter. Nothing is shown before the first step.
func New(c Config) *Reporter {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Every <= 0 {
		c.Every = defaultEvery
	}
	r := &Reporter{c: c, begun: c.Now()}
	if c.Late {
		r.shown = r.begun
	}
	return r
}

// Draws says whether a bar can be drawn on f: it is a terminal, and not one of those that
// only add line to line, which TERM calls dumb.
func Draws(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }

// Terminal says whether to draw a bar on f: the hint of a launcher
// (EBTRAIN_PROGRESS) decides, "tty" or "plain"; without a hint, whether f draws.
func Terminal(f *os.File, hint string) (bool, error) {
	switch hint {
	case "tty":
		return true, nil
	case "plain":
		return false, nil
	case "":
		return Draws(f), nil
	}
	return false, fmt.Errorf("EBTRAIN_PROGRESS=%q: expected tty or plain", hint)
}

// Width measures the terminal f whenever it is called; 0 if f is not one.
func Width(f *os.File) func() int {
	return func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return w
	}
}

// Step reports a step. It draws at most ten times a second.
func (r *Reporter) Step(u Update) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.c.Now()
	steps := int64(1)
	if r.any {
		steps = u.Step - r.last.Step
	}
	r.rate.add(now, steps, u.Images)
	first, final := !r.any, u.Step+1 == r.c.Total
	r.last, r.any, r.due = u, true, true
	if (first || final) && !r.quiet() || r.isTime(now) {
		r.show(now)
	}
}

// quiet says that the work may yet be too short to speak of.
func (r *Reporter) quiet() bool { return r.c.Late && !r.c.Terminal && r.shown.Equal(r.begun) }

// isTime says whether an ordinary step is to be shown.
func (r *Reporter) isTime(now time.Time) bool {
	if r.c.Terminal {
		return now.Sub(r.shown) >= redraw
	}
	if r.c.Steps > 0 {
		return (r.last.Step+1)%r.c.Steps == 0
	}
	return now.Sub(r.shown) >= r.c.Every
}

// Write prints whole lines, such as those of a log, above the bar.
func (r *Reporter) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	erase := ""
	if r.bar != "" {
		erase = "\r" + strings.Repeat(" ", min(columns(r.bar), r.width())) + "\r"
	}
	if _, err := io.WriteString(r.c.Out, erase); err != nil {
		return r.missed(len(text), err)
	}
	n, err := r.c.Out.Write(text)
	if err == nil && r.bar != "" {
		_, err = io.WriteString(r.c.Out, "\r"+r.bar)
	}
	if err != nil {
		return r.missed(len(text), err)
	}
	return n, nil
}

// missed is what a Write that failed returns: where nobody reads, nobody misses
// the text.
func (r *Reporter) missed(n int, err error) (int, error) {
	if r.unread(err) {
		return n, nil
	}
	return 0, err
}

// unread says that writing failed because the terminal or the reader of a pipe has
// gone away.
func (r *Reporter) unread(err error) bool { return r.c.Terminal || errors.Is(err, syscall.EPIPE) }

// Flush shows the last step if it was not shown yet, and ends the bar's line:
// what is written next comes after it.
func (r *Reporter) Flush() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
}

func (r *Reporter) flush() {
	if r.due && !r.quiet() {
		r.show(r.c.Now())
	}
	if r.bar != "" {
		r.print("\n")
		r.bar = ""
	}
}

// Close shows the last step if it was not shown yet, ends the bar's line, and
// returns the first error of writing.
func (r *Reporter) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	return r.err
}

// show draws the bar anew or prints a line.
func (r *Reporter) show(now time.Time) {
	r.shown, r.due = now, false
	if !r.c.Terminal {
		r.print(r.fields().text("") + "\n")
		return
	}
	width := r.width()
	if width != r.wide {
		r.wide, r.short = width, 0
	}
	old := min(columns(r.bar), width) // a terminal that has become narrower has none of the rest
	r.bar, r.short = r.fields().fit(width, r.short)
	// Spaces, not escape codes, cover the old text: they are harmless in logs.
	r.print("\r" + r.bar + strings.Repeat(" ", max(0, old-columns(r.bar))))
}

// print keeps the first error: a reader of the output that went away must not
// end a training run. That of a terminal or a pipe is dropped; see missed.
func (r *Reporter) print(s string) {
	if _, err := io.WriteString(r.c.Out, s); err != nil && r.err == nil && !r.unread(err) {
		r.err = err
	}
}
