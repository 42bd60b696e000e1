package progressbar

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// clock is a clock that is turned by hand.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

func newClock() *clock { return &clock{time.Unix(1_700_000_000, 0)} }

func update(step int64) Update {
	return Update{Step: step, Images: 64, Losses: map[string]float64{"vae": 12.3456789, "energy": -0.5}}
}

// screen is what a terminal shows after out: carriage returns overwrite.
func screen(out string) []string {
	lines := [][]rune{nil}
	x := 0
	for _, c := range out {
		switch c {
		case '\r':
			x = 0
		case '\n':
			lines, x = append(lines, nil), 0
		default:
			l := &lines[len(lines)-1]
			for len(*l) <= x {
				*l = append(*l, ' ')
			}
			(*l)[x] = c
			x++
		}
	}
	var s []string
	for _, l := range lines {
		s = append(s, strings.TrimRight(string(l), " "))
	}
	return s
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Total: 300, Every: 10 * time.Second, Now: c.now})
	for step := range int64(300) {
		r.Step(update(step))
		c.advance(250 * time.Millisecond)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{
		"step 1/300  energy -0.5  vae 12.35",
		"step 41/300  energy -0.5  vae 12.35  256 images/s  1m05s left",
		"step 81/300  energy -0.5  vae 12.35  256 images/s  55s left",
		"step 121/300  energy -0.5  vae 12.35  256 images/s  45s left",
	}
	for i, w := range want {
		if i >= len(lines) || lines[i] != w {
			t.Fatalf("line %d: got\n%s\nwant %q", i, out.String(), w)
		}
	}
	if got, want := lines[len(lines)-1], "step 300/300  energy -0.5  vae 12.35  256 images/s  0s left"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	if strings.Contains(out.String(), "\r") {
		t.Error("plain output has carriage returns")
	}
	if n := strings.Count(out.String(), "step 300/300"); n != 1 {
		t.Errorf("the last step is shown %d times", n)
	}
}

// TestPlainBySteps: a line every so many steps, and none between, however long that is.
func TestPlainBySteps(t *testing.T) {
	var out strings.Builder
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Total: 250, Every: 10 * time.Second, Steps: 100, Now: c.now})
	for step := range int64(250) {
		r.Step(update(step))
		c.advance(250 * time.Millisecond)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for line := range strings.Lines(out.String()) {
		steps = append(steps, strings.Fields(line)[1])
	}
	if got, want := strings.Join(steps, " "), "1/250 100/250 200/250 250/250"; got != want {
		t.Errorf("lines of steps %s, want %s", got, want)
	}
}

func TestBar(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Width: func() int { return 80 }, Total: 300, Now: c.now})
	for step := range int64(150) {
		r.Step(update(step))
		c.advance(10 * time.Millisecond)
	}
	if n := strings.Count(out.String(), "\r"); n != 15 {
		t.Errorf("drawn %d times in 1.5 s, want 15", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := screen(out.String())
	const want = "step 150/300 [======>     ] 50%  energy -0.5  vae 12.35  6400 images/s  2s left"
	if len(got) != 2 || got[0] != want || columns(want) != 79 {
		t.Errorf("screen %q, want %q, of 79 columns", got, want)
	}
}

func TestBarCoversOldText(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Total: 10, Now: c.now})
	r.Step(Update{Step: 0, Caption: "a very long caption, longer than the next one"})
	c.advance(time.Second)
	r.Step(Update{Step: 1, Caption: "short", Images: 1})
	if got := screen(out.String()); len(got) != 1 || strings.Contains(got[0], "caption") || !strings.HasPrefix(got[0], "step 2/10 [") || !strings.HasSuffix(got[0], "short  1 images/s  8s left") {
		t.Errorf("screen %q", got)
	}
}

// Under the launcher a terminal of 60 columns leaves a line 56: "[0] " is before
// it. From there on bar, rate and time left are shown, whatever the numbers.
func TestWidths(t *testing.T) {
	const launched = 56
	for _, run := range []struct {
		total, step int64
		every       time.Duration
	}{{300, 1, time.Second}, {10_000_000, 9_999_000, time.Minute}, {10_000_000, 1, 10 * time.Minute}, {100_000, 99_998, 600 * time.Microsecond}} {
		for width := 1; width < 150; width++ {
			var out bytes.Buffer
			c := newClock()
			r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Width: func() int { return width }, Total: run.total, Now: c.now})
			for i := range int64(2) {
				u := update(run.step + i - 1)
				u.Caption = "epoch 12"
				r.Step(u)
				c.advance(run.every)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			line := screen(out.String())[0]
			if columns(line) >= width && width > 1 {
				t.Errorf("%d columns on a terminal of %d: %q", columns(line), width, line)
			}
			if whole := strings.Contains(line, "[") && strings.Contains(line, "]") && strings.Contains(line, "/s") && strings.HasSuffix(line, " left"); width >= launched && !whole {
				t.Errorf("width %d: %q has no bar, rate or time left", width, line)
			}
			if width == 149 && !strings.Contains(line, "epoch 12  energy -0.5  vae 12.35") {
				t.Errorf("width %d: %q has not all losses", width, line)
			}
		}
	}
}

// Where there is room for a word at one drawing and not at the next, it stays away: the bar
// does not jump. It comes back where there is plenty of room.
func TestCalm(t *testing.T) {
	width := 100
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Width: func() int { return width }, Total: 300, Now: c.now})
	seen := func(upper float64) bool {
		out.Reset()
		c.advance(time.Second)
		r.Step(Update{Step: r.last.Step + 1, Images: 64, Caption: "epoch 0", Losses: map[string]float64{"lower": 36.33, "recon": 699.5, "upper": upper}})
		return strings.Contains(out.String(), "upper")
	}
	if !seen(0.5) || !seen(0.25) || seen(-0.0002303) {
		t.Fatalf("want the last loss where there is room for it: %q", out.String())
	}
	for range 3 {
		if seen(0.0151) {
			t.Errorf("the last loss comes back at once: %q", out.String())
		}
	}
	if !seen(2) {
		t.Errorf("the last loss does not come back: %q", out.String())
	}
	if seen(-0.0002303) {
		t.Errorf("want no room for the last loss: %q", out.String())
	}
	if width = 110; !seen(-0.0002303) {
		t.Errorf("a wider terminal has no more: %q", out.String())
	}
}

// The width is asked again at each drawing, and the spaces that cover the old
// text do not wrap in a terminal that has become narrower.
func TestNarrowed(t *testing.T) {
	width := 120
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Width: func() int { return width }, Total: 300, Now: c.now})
	r.Step(update(0))
	c.advance(time.Second)
	r.Step(update(1))
	for _, width = range []int{40, 100} {
		out.Reset()
		c.advance(time.Second)
		r.Step(update(2))
		if text := strings.TrimPrefix(out.String(), "\r"); columns(text) >= width || width == 100 && columns(text) < 90 {
			t.Errorf("%d columns on a terminal of %d: %q", columns(text), width, text)
		}
	}
}

// A program's phases each have a bar, and short ones no lines.
func TestPhases(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	p := ConfigurePhases(Config{Out: &out, Late: true, Every: 5 * time.Second, Now: c.now})
	for done := range int64(30) {
		p.Progress("train", "images/s", done+1, 30)
		c.advance(time.Second / 2)
	}
	for done := range int64(3) {
		p.Progress("test", "images/s", done+1, 3)
		c.advance(time.Second / 2)
	}
	p.Line("skipped one")
	for done := range int64(8) {
		p.Progress("rest", "KiB/s", 10*(done+1), -1)
		c.advance(time.Second)
	}
	p.End()
	p.Line("done")
	const want = "train 11/30  2 images/s  10s left\ntrain 21/30  2 images/s  5s left\ntrain 30/30  2 images/s  0s left\n" +
		"skipped one\nrest 60  10 KiB/s\nrest 80  10 KiB/s\ndone\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestLogsAboveBar(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: true, Total: 10, Now: c.now})
	log := slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("before")
	r.Step(Update{Step: 4})
	log.Info("checkpoint written", "step", 5)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	log.Info("after")
	got := screen(out.String())
	if len(got) != 5 || got[0] != "level=INFO msg=before" || got[1] != `level=INFO msg="checkpoint written" step=5` ||
		!strings.HasPrefix(got[2], "step 5/10 [") || got[3] != "level=INFO msg=after" {
		t.Errorf("screen %q", got)
	}
}

// The first step's time does not count, and after a change the estimate
// follows within about the memory of the average.
func TestRate(t *testing.T) {
	var r rate
	c := newClock()
	run := func(steps int, each time.Duration) {
		for range steps {
			c.advance(each)
			r.add(c.now(), 1, 10)
		}
	}
	run(1, time.Hour)
	if images, steps := r.perSecond(); images != 0 || steps != 0 {
		t.Errorf("after one step: %v, %v; want unknown", images, steps)
	}
	run(20, 500*time.Millisecond)
	if images, steps := r.perSecond(); images < 19.99 || images > 20.01 || steps < 1.999 || steps > 2.001 {
		t.Errorf("%v images/s, %v steps/s; want 20 and 2", images, steps)
	}
	run(60, time.Second)
	if _, steps := r.perSecond(); steps < 1 || steps > 1.05 {
		t.Errorf("60 s after slowing down to 1 step/s: %v", steps)
	}
	run(5, 0) // a clock that stands still divides by nothing
	run(1, time.Second)
	if _, steps := r.perSecond(); steps < 1 || steps > 1.5 {
		t.Errorf("after a clock that stood still: %v", steps)
	}
}

// Each of a hundred steps is a percent, also 29, which is a little less as a fraction.
func TestPercent(t *testing.T) {
	r := New(Config{Terminal: true, Total: 100})
	for n := range int64(101) {
		r.last.Step = n - 1
		if got, want := r.fields().percent, fmt.Sprintf(" %d%%", n); got != want {
			t.Errorf("step %d of 100 is shown as%s, want%s", n, got, want)
		}
	}
}

func TestBarCells(t *testing.T) {
	tests := []struct {
		before, done float64
		n            int
		want         string
	}{
		{0, 0, 8, ">       "}, {0, 0.5, 8, "====>   "}, {0.25, 0.5, 8, "--==>   "},
		{0, 1, 8, "========"}, {1, 1, 8, "--------"}, {0.5, 0.499, 8, "--->    "}, {0, 0.999, 8, "=======>"},
	}
	for _, tt := range tests {
		if got := bar(tt.before, tt.done, tt.n); got != tt.want {
			t.Errorf("bar(%v, %v, %d) = %q, want %q", tt.before, tt.done, tt.n, got, tt.want)
		}
	}
}

func TestSpan(t *testing.T) {
	tests := []struct {
		seconds float64
		want    string
	}{
		{0, "0s"}, {59.4, "59s"}, {59.6, "1m00s"}, {62, "1m02s"}, {3599.9, "1h00m"}, {7260, "2h01m"},
		{47*3600 + 1, "47h00m"}, {49 * 3600, "2d01h"}, {1e300, "over 3 years"},
	}
	for _, tt := range tests {
		if got := span(tt.seconds); got != tt.want {
			t.Errorf("span(%v) = %q, want %q", tt.seconds, got, tt.want)
		}
	}
}

func TestTerminalHint(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	for hint, want := range map[string]bool{"tty": true, "plain": false, "": false} {
		if got, err := Terminal(f, hint); err != nil || got != want {
			t.Errorf("hint %q: %v, %v; want %v", hint, got, err, want)
		}
	}
	if _, err := Terminal(f, "yes"); err == nil || !strings.Contains(err.Error(), `EBTRAIN_PROGRESS="yes"`) {
		t.Errorf("hint yes: %v", err)
	}
	if w := Width(f)(); w != 0 {
		t.Errorf("width of /dev/null is %d", w)
	}
}

var errGone = errors.New("reader went away")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errGone }

func TestBrokenOutput(t *testing.T) {
	r := New(Config{Label: "step", Unit: "images/s", Out: broken{}, Total: 2})
	r.Step(Update{Step: 0})
	r.Step(Update{Step: 1})
	if err := r.Close(); !errors.Is(err, errGone) {
		t.Errorf("Close gives %v, want %v", err, errGone)
	}
	var none *Reporter
	none.Step(Update{})
	if err := none.Close(); err != nil {
		t.Errorf("the nil Reporter: %v", err)
	}
}

// TestFlush wants what is written after Flush below the last step, with a bar and
// without, and the bar once.
func TestFlush(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		r := New(Config{Label: "step", Unit: "images/s", Out: &out, Terminal: terminal, Total: 2, Now: newClock().now})
		r.Step(update(0))
		r.Step(update(1))
		r.Flush()
		if _, err := r.Write([]byte("2 steps done\n")); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		lines := screen(strings.TrimSuffix(out.String(), "\n"))
		if n := len(lines); n < 2 || !strings.HasPrefix(lines[n-2], "step 2/2") || lines[n-1] != "2 steps done" {
			t.Errorf("terminal %v: want the last step, then what was written, got\n%s", terminal, strings.Join(lines, "\n"))
		}
	}
}
