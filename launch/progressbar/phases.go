package progressbar

import (
	"fmt"
	"io"
	"os"
	"time"
)

// phaseEvery is the time between plain lines of a phase.
const phaseEvery = 5 * time.Second

// Phases shows the progress of one phase of a program after the other. What is
// done within seconds is not spoken of where there is no terminal. It belongs to
// one goroutine, and an error of writing is dropped: progress is no result.
type Phases struct {
	c    Config // of every phase
	show *Reporter
	name string
	done int64
}

// NewPhases shows phases on w, with a bar if that is a terminal.
func NewPhases(w io.Writer) *Phases {
	c := Config{Out: w, Late: true, Every: phaseEvery}
	if f, ok := w.(*os.File); ok && Draws(f) {
		c.Terminal, c.Width = true, Width(f)
	}
	return ConfigurePhases(c)
}

// ConfigurePhases shows every phase as c says, but for Label, Unit and Total.
func ConfigurePhases(c Config) *Phases { return &Phases{c: c} }

// Progress says that done of total are done in the phase called name; unit is
// that of the rate, for example "images/s". A negative total is unknown.
func (p *Phases) Progress(name, unit string, done, total int64) {
	p.Say(name, unit, "", done, total)
}

// Say is Progress with more words, shown before the rate.
func (p *Phases) Say(name, unit, words string, done, total int64) {
	if name != p.name || p.show == nil {
		p.End()
		c := p.c
		c.Label, c.Unit, c.Total = name, unit, total
		p.show, p.name, p.done = New(c), name, 0
	}
	p.show.Step(Update{Step: done - 1, Images: done - p.done, Caption: words})
	p.done = done
}

// Line writes a message above the bar.
func (p *Phases) Line(text string) {
	if p.show == nil {
		_, _ = fmt.Fprintln(p.c.Out, text) // see Phases
		return
	}
	_, _ = fmt.Fprintln(p.show, text) // see Phases
}

// End ends the phase. Another may follow.
func (p *Phases) End() {
	_ = p.show.Close() // see Phases
	p.show = nil
}
