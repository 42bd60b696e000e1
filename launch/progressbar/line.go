package progressbar

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
	wantBar = 8  // cells: for them words are left out
	minBar  = 3  // cells: below that there is no bar
	maxBar  = 40 // cells
	calm    = 6  // cells more than wantBar for which a word comes back that was left out
)

// width is how many columns a line may have.
func (r *Reporter) width() int {
	width := 0
	if r.c.Width != nil {
		width = r.c.Width()
	}
	if width <= 0 {
		width = unknownWidth
	}
	return width - 1 // a full line would make some terminals begin a new one
}

// fields is what a line says, part by part; an empty part is left out.
type fields struct {
	label, count string   // "step", "120/300"
	values       []string // a caption and the losses
	speed, unit  string   // "845", "images/s"
	left         string   // "1m02s left"

	before, done float64 // fractions of the whole, for the bar
	percent      string  // " 40%"; empty if the whole is unknown
}

func (r *Reporter) fields() fields {
	n := r.last.Step + 1
	f := fields{label: r.c.Label, count: fmt.Sprint(n), unit: r.c.Unit}
	if r.c.Total >= 0 {
		f.count += fmt.Sprintf("/%d", r.c.Total)
		f.before, f.done = r.fraction(r.c.Start), r.fraction(n)
		f.percent = fmt.Sprintf(" %d%%", r.percent(n))
	}
	for _, name := range slices.Sorted(maps.Keys(r.last.Losses)) {
		f.values = append(f.values, fmt.Sprintf("%s %.4g", name, r.last.Losses[name]))
	}
	if r.last.Caption != "" {
		f.values = append([]string{r.last.Caption}, f.values...)
	}
	if images, steps := r.rate.perSecond(); steps > 0 {
		f.speed = speed(images)
		if r.c.Total >= 0 {
			f.left = span(float64(max(0, r.c.Total-n))/steps) + " left"
		}
	}
	return f
}

// text is the line; bar comes after the count.
func (f fields) text(bar string) string {
	words := []string{strings.TrimSpace(f.label+" "+f.count) + bar}
	words = append(words, f.values...)
	switch {
	case f.speed != "" && f.unit == perSecond:
		words = append(words, f.speed+f.unit)
	case f.speed != "":
		words = append(words, f.speed+" "+f.unit)
	}
	if f.left != "" {
		words = append(words, f.left)
	}
	return strings.Join(words, "  ")
}

// perSecond is the shortest unit of a rate.
const perSecond = "/s"

// shorter leave out, one after the other, what a narrow terminal has no room
// for. Each says whether there was something to leave out.
var shorter = []func(f *fields) bool{
	func(f *fields) bool { // the losses, from the last, and then the caption
		if len(f.values) == 0 {
			return false
		}
		f.values = f.values[:len(f.values)-1]
		return true
	},
	func(f *fields) bool { done := f.label == ""; f.label = ""; return !done },
	func(f *fields) bool { done := f.unit == perSecond; f.unit = perSecond; return !done },
}

// fit is the line in at most width columns, with a bar that fills them: first
// the words go, then the bar, the rate and the time left. It tells how many words are left
// out, of which the line before left out so many: numbers change their length, and a word
// for which there is room at one drawing and not at the next would make the bar jump.
func (f fields) fit(width, before int) (line string, short int) {
	for _, shorten := range shorter {
		for {
			least := wantBar
			if short < before {
				least += calm
			}
			if line, ok := f.drawn(width, least); ok {
				return line, short
			}
			if !shorten(&f) {
				break
			}
			short++
		}
	}
	return f.bare(width), short
}

// bare is the line without words.
func (f fields) bare(width int) string {
	if line, ok := f.drawn(width, minBar); ok {
		return line
	}
	for _, drop := range []*string{nil, &f.speed, &f.left, &f.percent} {
		if drop != nil {
			*drop = ""
		}
		if line := f.text(f.percent); columns(line) <= width {
			return line
		}
	}
	return string([]rune(f.count)[:max(0, min(columns(f.count), width))])
}

// drawn is the line with a bar of at least least cells, if there is room.
func (f fields) drawn(width, least int) (line string, ok bool) {
	if f.percent == "" { // there is no bar of an unknown whole
		line = f.text("")
		return line, columns(line)+max(0, least-wantBar) <= width
	}
	free := width - columns(f.text(" []"+f.percent))
	if free < least {
		return "", false
	}
	return f.text(" [" + bar(f.before, f.done, min(free, maxBar)) + "]" + f.percent), true
}

// fraction is the part of the whole that n steps are.
func (r *Reporter) fraction(n int64) float64 {
	if r.c.Total <= 0 {
		return 1
	}
	return min(1, float64(n)/float64(r.c.Total))
}

// percent is the same in whole percents: of a fraction, 29 of 100 would be 28.
func (r *Reporter) percent(n int64) int64 {
	if r.c.Total <= 0 {
		return 100
	}
	return 100 * min(n, r.c.Total) / r.c.Total
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

// Span is a time in words, as in a line: "1m02s".
func Span(d time.Duration) string { return span(d.Seconds()) }

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

// add takes steps that ended now. The first call starts the clock.
func (r *rate) add(now time.Time, steps, images int64) {
	if r.last.IsZero() {
		r.last = now
		return
	}
	r.pend += float64(steps)
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
