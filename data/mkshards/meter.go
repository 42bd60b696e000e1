package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is the time between lines of progress where there is no terminal.
const plainEvery = 5 * time.Second

// meter shows progress: a bar on a terminal, now and then a line elsewhere. It
// belongs to one goroutine. What it cannot write is lost; progress is no result.
type meter struct {
	w     io.Writer
	tty   bool
	bar   *progressbar.ProgressBar
	phase string
	start time.Time // of the phase
	last  time.Time // of the last line
}

func newMeter(w io.Writer) *meter {
	f, ok := w.(*os.File)
	return &meter{w: w, tty: ok && term.IsTerminal(int(f.Fd()))}
}

// progress says that done of total are done in a phase; total −1 is unknown.
func (m *meter) progress(phase string, done, total int64) {
	if phase != m.phase {
		m.end()
		m.phase, m.start = phase, time.Now()
		m.last = m.start
		if m.tty {
			m.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(m.w), progressbar.OptionSetDescription(phase),
				progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true))
		}
	}
	if m.bar != nil {
		_ = m.bar.Set64(done) // see meter
		return
	}
	if time.Since(m.last) < plainEvery {
		return
	}
	m.last = time.Now()
	of := ""
	if total > 0 {
		of = fmt.Sprintf(" of %d", total)
	}
	fmt.Fprintf(m.w, "%s: %d%s, %.0f a second\n", phase, done, of, float64(done)/time.Since(m.start).Seconds())
}

// line writes a message without spoiling the bar.
func (m *meter) line(s string) {
	if m.bar != nil {
		_ = m.bar.Clear() // see meter
	}
	fmt.Fprintln(m.w, s)
}

// end finishes the phase's bar.
func (m *meter) end() {
	if m.bar != nil {
		_ = m.bar.Exit() // see meter
		fmt.Fprintln(m.w)
	}
	m.bar, m.phase = nil, ""
}
