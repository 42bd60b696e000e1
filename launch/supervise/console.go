package supervise

import (
	"errors"
	"strings"
	"sync"
	"time"

	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
)

// Streams of a rank.
const (
	stdout = 0
	stderr = 1
)

// console writes the ranks' lines, each with its prefix, to the launcher's
// output. On a terminal it keeps one rank's progress bar on the last line. Its
// methods may be called from any goroutine; none but line and flush waits for
// whoever reads the output.
type console struct {
	name    string // of this program, in front of its own lines
	mu      sync.Mutex
	out     [2]*outlet.Writer
	tty     bool
	draws   bool       // the terminal can be drawn on
	color   bool       // the terminal shows colours
	columns func() int // measures the terminal; nil or 0: not known
	fold    fold
	said    said
	forward *forwarder // hands lines to node 0; nil if they are shown here
	timer   *time.Timer
	bar     string // shown on the last line of the terminal; "" for none
	barBy   int    // the rank it is from
}

func newConsole(out, err *outlet.Writer, tty bool, columns func() int, ranks int) *console {
	c := &console{out: [2]*outlet.Writer{out, err}, tty: tty, draws: tty, columns: columns, fold: fold{ranks: ranks}}
	c.timer = time.AfterFunc(time.Hour, c.due)
	return c
}

// line takes a whole line of a rank. It may be called by who carries that rank's
// output alone: it slows a rank down that writes faster than is read, as long as
// anything is read.
func (c *console) line(rank, stream int, text string) {
	defer c.out[stream].Turn()()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold.add(rank, stream, text, time.Now())
	c.emit(false)
}

// status takes the text that a rank has drawn with carriage returns; "" means
// that it is done with. Away from a terminal that draws it is dropped.
func (c *console) status(rank int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.draws || c.bar != "" && rank > c.barBy:
		return
	case text == "":
		if c.bar != "" && rank == c.barBy {
			c.erase()
			c.bar = ""
		}
	default:
		c.bar, c.barBy = text, rank
		c.draw()
	}
}

// say takes a line of the launcher itself.
func (c *console) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold.say(text, time.Now())
	c.emit(false)
}

// begin says that the ranks of an epoch are started: what those of the last have said is
// over.
func (c *console) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emit(true)
	c.said, c.fold.ending = said{}, false
}

// ending says that the job is about to end with a failure.
func (c *console) ending() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said.ending, c.fold.ending = true, true
}

// conclude says why the job has ended, unless the ranks of program have.
func (c *console) conclude(cause *rendezvous.Cause, program string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emit(true)
	if !c.said.explains(cause, program) {
		c.fold.say(cause.Error(), time.Now())
		c.emit(true)
	}
}

// flush writes all lines that wait and ends the progress bar. It gives up on who
// reads nothing for a second. It returns the first error of writing there has
// been, but none of a terminal: one that goes away says so by SIGHUP, if anyone
// is to act on it.
func (c *console) flush() error {
	c.finish()
	err := c.out[stderr].Flush()
	if c.out[stdout].Outlet != c.out[stderr].Outlet {
		err = errors.Join(err, c.out[stdout].Flush())
	}
	if err == nil || c.tty {
		return nil
	}
	return unwritten(err)
}

func (c *console) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emit(true)
	if c.bar != "" {
		c.write(stderr, "\n")
		c.bar = ""
	}
	c.timer.Stop()
}

func (c *console) due() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emit(false)
}

func (c *console) emit(all bool) {
	ready := c.fold.take(time.Now(), all)
	if len(ready) > 0 {
		c.erase()
		for _, e := range ready {
			if c.said.add(e) || c.forward != nil && e.ranks[0] != launcher && c.forward.put(e) {
				continue
			}
			c.show(e)
		}
		c.draw()
	}
	if at, ok := c.fold.next(); ok {
		c.timer.Reset(time.Until(at))
	}
}

// show writes a line.
func (c *console) show(e folded) {
	text := c.paint(e.ranks, c.prefix(e.ranks))
	if e.text != "" {
		text += " " + e.text
	}
	c.write(e.stream, text+"\n")
}

// prefix is what stands before a line of ranks, or of the launcher.
func (c *console) prefix(ranks []int) string {
	if ranks[0] == launcher {
		return c.name + ":"
	}
	return prefix(ranks)
}

func (c *console) erase() {
	if c.bar != "" {
		c.write(stderr, "\r\x1b[K")
	}
}

// draw shows the bar in one line, which a terminal would break if it were as
// wide as itself.
func (c *console) draw() {
	if c.bar == "" {
		return
	}
	text := []rune(strings.TrimRight(prefix([]int{c.barBy})+" "+c.bar, " "))
	if c.columns != nil {
		if n := c.columns(); n > 0 {
			text = text[:min(len(text), n-1)]
		}
	}
	line := string(text)
	if p := prefix([]int{c.barBy}); strings.HasPrefix(line, p) { // else it is cut within
		line = c.paint([]int{c.barBy}, p) + line[len(p):]
	}
	c.write(stderr, "\r"+line+"\x1b[K")
}

// redraw draws the bar anew on a terminal of another width.
func (c *console) redraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draw()
}

// write queues text. After an error the ranks' output is read on and lost, so
// that they are not blocked while they are asked to stop; flush knows the error.
func (c *console) write(stream int, text string) {
	_, _ = c.out[stream].Write([]byte(text))
}
