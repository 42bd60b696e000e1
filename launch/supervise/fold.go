package supervise

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// foldWindow is how long a line waits for the same line of other ranks, and
// lastWindow how long when the job is ending: the ranks say why, each after it has
// closed what it had open. Nobody waits longer than for the last of them.
const (
	foldWindow = 100 * time.Millisecond
	lastWindow = time.Second
)

// maxHeld is how many lines may wait, and maxHeldBytes of how many bytes together: a flood is
// passed on as it comes. There is room for so many where there is for any, see outlet.
const (
	maxHeld      = 500
	maxHeldBytes = 256 << 10
)

// launcher stands for the launcher among the ranks that write lines.
const launcher = -1

// fold merges equal lines of several ranks. It keeps the order of every rank's
// lines, and holds a line for foldWindow at most. It is pure: the time is an
// argument.
type fold struct {
	ranks  int  // how many ranks write; with one, nothing waits
	ending bool // the job is
	queue  []folded
}

// folded is one line and the ranks that wrote it.
type folded struct {
	stream   int
	text     string
	ranks    []int
	deadline time.Time
}

// add takes a line of rank on a stream. It joins an equal line of other ranks
// if there is one that it can share without changing the order of any rank's
// own lines.
func (f *fold) add(rank, stream int, text string, now time.Time) {
	last := -1 // the rank's own last line
	for i, e := range f.queue {
		if e.has(rank) {
			last = i
		}
	}
	for i, e := range f.queue {
		if e.text != text || e.stream != stream || e.has(rank) {
			continue
		}
		if at, ok := f.moveBehind(i, last); ok {
			f.queue[at].ranks = append(f.queue[at].ranks, rank)
			return
		}
	}
	window := foldWindow
	if f.ending {
		window = lastWindow
	}
	f.queue = append(f.queue, folded{stream, text, []int{rank}, now.Add(window)})
}

// moveBehind moves line i, with all that must stay behind it, behind line
// last, and returns where it is then. It is impossible if last itself must
// stay behind line i.
func (f *fold) moveBehind(i, last int) (at int, ok bool) {
	if i > last {
		return i, true
	}
	var before, behind []folded
	for k, e := range f.queue[i : last+1] {
		if len(behind) == 0 || slices.ContainsFunc(behind, e.shares) {
			if i+k == last {
				return 0, false
			}
			behind = append(behind, e)
		} else {
			if e.deadline.After(behind[0].deadline) {
				e.deadline = behind[0].deadline // nobody waits longer for being moved
			}
			before = append(before, e)
		}
	}
	copy(f.queue[i:], append(before, behind...))
	return i + len(before), true
}

// has reports whether rank wrote e, and is true for a line of the launcher,
// which nothing overtakes.
func (e folded) has(rank int) bool {
	return e.ranks[0] == launcher || slices.Contains(e.ranks, rank)
}

// shares reports whether the order of e and d matters to some rank.
func (e folded) shares(d folded) bool {
	return e.ranks[0] == launcher || slices.ContainsFunc(e.ranks, d.has)
}

// say takes a line of the launcher itself. It keeps its place behind what the
// ranks have written so far.
func (f *fold) say(text string, now time.Time) {
	f.queue = append(f.queue, folded{stderr, text, []int{launcher}, now})
}

// take removes the lines that need wait no longer, in order; all says not to
// wait at all.
func (f *fold) take(now time.Time, all bool) []folded {
	all = all || len(f.queue) > maxHeld || f.bytes() > maxHeldBytes
	n := 0
	for n < len(f.queue) {
		if e := f.queue[n]; !all && len(e.ranks) < f.ranks && now.Before(e.deadline) {
			break
		}
		n++
	}
	out := slices.Clone(f.queue[:n])
	f.queue = slices.Delete(f.queue, 0, n)
	return out
}

// bytes is how many the lines have that wait.
func (f *fold) bytes() (sum int) {
	for _, e := range f.queue {
		sum += len(e.text)
	}
	return sum
}

// next is when take may have more; ok is false if nothing waits.
func (f *fold) next() (at time.Time, ok bool) {
	if len(f.queue) == 0 {
		return time.Time{}, false
	}
	return f.queue[0].deadline, true
}

// prefix is "[0]", "[0-3]" or "[0,2-3]".
func prefix(ranks []int) string {
	return "[" + rankList(ranks) + "]"
}

// rankList is "0", "0-3" or "0,2-3".
func rankList(ranks []int) string {
	ranks = slices.Sorted(slices.Values(ranks))
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(ranks[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
