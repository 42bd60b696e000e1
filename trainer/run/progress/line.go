package progress

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	minBar = 8  // cells: below that there is no bar
	maxBar = 40 // cells
)

// fit is the line with a bar that fills the terminal's width, cut to it.
func (r *Reporter) fit() string {
	width := 0
	if r.c.Width != nil {
		width = r.c.Width()
	}
	if width <= 0 {
		width = unknownWidth
	}
	width-- // a full line would make some terminals begin a new one
	before, done := r.fraction(r.c.Start), r.fraction(r.last.Step+1)
	percent := fmt.Sprintf(" %d%%", int(100*done))
	free := width - columns(r.text(" []"+percent))
	line := r.text("")
	if free >= minBar {
		line = r.text(" [" + bar(before, done, min(free, maxBar)) + "]" + percent)
	}
	if n := columns(line); n > width {
		line = string([]rune(line)[:width])
	}
	return line
}

// text is the line; bar comes after the step's number.
func (r *Reporter) text(bar string) string {
	fields := []string{fmt.Sprintf("step %d/%d%s", r.last.Step+1, r.c.Total, bar)}
	if r.last.Caption != "" {
		fields = append(fields, r.last.Caption)
	}
	for _, name := range slices.Sorted(maps.Keys(r.last.Losses)) {
		fields = append(fields, fmt.Sprintf("%s %.4g", name, r.last.Losses[name]))
	}
	if images, steps := r.rate.perSecond(); steps > 0 {
		left := float64(max(0, r.c.Total-r.last.Step-1)) / steps
		fields = append(fields, speed(images)+" images/s", span(left)+" left")
	}
	return strings.Join(fields, "  ")
}

// fraction is the part of the run that n steps are.
func (r *Reporter) fraction(n int64) float64 {
	if r.c.Total <= 0 {
		return 1
	}
	return min(1, float64(n)/float64(r.c.Total))
}

// speed is a rate with three digits, or all digits before the point.
func speed(v float64) string {
	if v >= 999.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// bar is n cells: what was done before this start, since then, and is left.
func bar(before, done float64, n int) string {
	old, full := int(before*float64(n)), int(done*float64(n))
	old = min(old, full)
	cells := strings.Repeat("-", old) + strings.Repeat("=", full-old)
	if full == n {
		return cells
	}
	return cells + ">" + strings.Repeat(" ", n-full-1)
}

// span is a time in seconds, in at most two units.
func span(seconds float64) string {
	if seconds > 1e8 {
		return "over 3 years"
	}
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	h, m, s := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case h >= 48:
		return fmt.Sprintf("%dd%02dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

func columns(s string) int { return utf8.RuneCountInString(s) }

// rate is an average over the recent past: each interval's weight falls by
// exp(−t/15 s) as it ages.
type rate struct {
	last           time.Time
	steps, images  float64 // weighted
	seconds        float64 // weighted
	pendingI, pend float64 // images and steps since last, if the clock stood still
}

const memory = 15.0 // seconds

// add takes a step that ended now. The first starts the clock.
func (r *rate) add(now time.Time, images int64) {
	if r.last.IsZero() {
		r.last = now
		return
	}
	r.pend++
	r.pendingI += float64(images)
	dt := now.Sub(r.last).Seconds()
	if dt <= 0 {
		return
	}
	fade := math.Exp(-dt / memory)
	r.steps = r.steps*fade + r.pend
	r.images = r.images*fade + r.pendingI
	r.seconds = r.seconds*fade + dt
	r.last, r.pend, r.pendingI = now, 0, 0
}

// perSecond is the rates; zeros if they are not known yet.
func (r *rate) perSecond() (images, steps float64) {
	if r.seconds == 0 {
		return 0, 0
	}
	return r.images / r.seconds, r.steps / r.seconds
}
