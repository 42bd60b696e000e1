package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ebtrain/launch/progressbar"
)

// Times between looks at the metrics, and between lines where there is no
// terminal.
const (
	lookEvery = time.Second
	lineEvery = 30 * time.Second
)

// progress shows how far all cells together are, in steps. Its methods may be
// called from any goroutine.
type progress struct {
	mu      sync.Mutex
	show    *progressbar.Reporter
	running map[string]func() (step int64, doing string) // by cell
	done    map[string]int64                             // steps, by cell
	before  int64
	spoke   time.Time // when something was said last
	stop    chan struct{}
	ended   chan struct{}
}

// newProgress shows the work on open.
func newProgress(out io.Writer, open []task) *progress {
	p := &progress{running: map[string]func() (int64, string){}, done: map[string]int64{}, stop: make(chan struct{}), ended: make(chan struct{}), spoke: time.Now()}
	c := progressbar.Config{Out: out, Label: "step", Unit: "steps/s", Every: lineEvery, Late: true}
	if f, ok := out.(*os.File); ok && progressbar.Draws(f) {
		c.Terminal, c.Width = true, progressbar.Width(f)
	}
	for _, t := range open {
		c.Total += t.steps
		p.done[t.String()] = stepOf(t.Cell)
		c.Start += p.done[t.String()]
	}
	p.before = c.Start
	p.show = progressbar.New(c)
	go p.watch()
	return p
}

// line writes a line above the bar.
func (p *progress) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.show, format+"\n", args...) // progress is no result
}

// begin shows a cell while it is done; the result ends that.
func (p *progress) begin(t task, look func() (int64, string)) (end func(steps int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[t.String()] = look
	return func(steps int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, t.String())
		p.done[t.String()] = steps
	}
}

// watch looks at the cells from time to time.
func (p *progress) watch() {
	defer close(p.ended)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.look()
		}
	}
}

// look shows the steps done.
func (p *progress) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var caption []string
	for _, name := range slices.Sorted(maps.Keys(p.running)) {
		step, doing := p.running[name]()
		p.done[name] = max(step, p.done[name])
		caption = append(caption, doing)
	}
	var sum int64
	for _, n := range p.done {
		sum += n
	}
	switch {
	case sum > p.before:
		p.show.Step(progressbar.Update{Step: sum - 1, Images: sum - p.before, Caption: strings.Join(caption, ", ")})
		p.before, p.spoke = sum, time.Now()
	case len(caption) > 0 && time.Since(p.spoke) >= lineEvery: // nothing is trained
		p.line("under way: %s", strings.Join(caption, ", "))
		p.spoke = time.Now()
	}
}

func (p *progress) close() {
	close(p.stop)
	<-p.ended
	_ = p.show.Close() // progress is no result
}
