package main

import (
	"fmt"
	"time"

	"ebtrain/launch/progressbar"
)

const (
	reckonAfter = 3 * time.Second // from the beginning of a phase: by then its rate is known
	longPhase   = time.Minute     // of which a warning is worth a line
)

// reckoning says, once of each phase of the work and while it has hardly begun, how long
// it takes, if that is long, and what makes it shorter.
type reckoning struct {
	phase      string
	from, done int64
	began      time.Time
	told       bool
	now        func() time.Time // nil: time.Now
}

// line is what is to be said now, when so much of a phase is done; "" if nothing. Less is
// what makes the phase shorter, in words, "" for nothing.
func (r *reckoning) line(phase string, done, total int64, less string) string {
	now := time.Now
	if r.now != nil {
		now = r.now
	}
	if phase != r.phase || done < r.done || r.began.IsZero() {
		*r = reckoning{phase: phase, from: done, began: now(), now: r.now}
	}
	r.done = done
	took := now().Sub(r.began)
	if r.told || done == r.from || took < reckonAfter {
		return ""
	}
	r.told = true
	all := time.Duration(float64(took) / float64(done-r.from) * float64(total-r.from))
	if all < longPhase {
		return ""
	}
	text := fmt.Sprintf("evaluate: %s: about %s in all, by the first %d of %d", phase, progressbar.Span(all), done, total)
	if less != "" {
		text += "; less with " + less
	}
	return text
}

// progress shows how far a phase is, and says of a long one how long it takes.
func (e *evaluation) progress(phase, unit string, done, total int64, less string) {
	e.show.Progress(phase, unit, done, total)
	if text := e.reckon.line(phase, done, total, less); text != "" {
		e.show.Line(text)
	}
}
