package supervise

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// foldWindow is how long a line waits for the same line of other ranks.
const foldWindow = 100 * time.Millisecond

// launcher stands for the launcher among the ranks that write lines.
const launcher = -1

// fold merges equal lines of several ranks. It keeps the order of every rank's
// lines, and holds a line for foldWindow at most. It is pure: the time is an
// argument.
type fold struct {
	ranks int // how many ranks write; with one, nothing waits
	queue []folded
}

// folded is one line and the ranks that wrote it.
type folded struct {
	stream   int
	text     string
	ranks    []int
	deadline time.Time
}

// add takes a line of rank on a stream.
func (f *fold) add(rank, stream int, text string, now time.Time) {
	first := 0 // behind the rank's own last line
	for i, e := range f.queue {
		if slices.Contains(e.ranks, rank) {
			first = i + 1
		}
	}
	for i := first; i < len(f.queue); i++ {
		if e := &f.queue[i]; e.text == text && e.stream == stream && e.ranks[0] != launcher {
			e.ranks = append(e.ranks, rank)
			return
		}
	}
	// It goes right behind the rank's own last line, so that its next line may
	// still meet what others wrote; those others wait no longer for that.
	deadline := now.Add(foldWindow)
	if first < len(f.queue) && f.queue[first].deadline.Before(deadline) {
		deadline = f.queue[first].deadline
	}
	f.queue = slices.Insert(f.queue, first, folded{stream, text, []int{rank}, deadline})
}

// say takes a line of the launcher itself. It keeps its place behind what the
// ranks have written so far.
func (f *fold) say(text string, now time.Time) {
	f.queue = append(f.queue, folded{stderr, text, []int{launcher}, now})
}

// take removes the lines that need wait no longer, in order; all says not to
// wait at all.
func (f *fold) take(now time.Time, all bool) []folded {
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

// next is when take may have more; ok is false if nothing waits.
func (f *fold) next() (at time.Time, ok bool) {
	if len(f.queue) == 0 {
		return time.Time{}, false
	}
	return f.queue[0].deadline, true
}

// prefix is "[0]", "[0-3]" or "[0,2-3]"; for the launcher it is its name.
func prefix(ranks []int) string {
	if ranks[0] == launcher {
		return "ddplaunch:"
	}
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
	return "[" + strings.Join(parts, ",") + "]"
}
