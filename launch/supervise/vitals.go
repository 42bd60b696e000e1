package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

const (
	// lookInterval is how often the ranks are looked at.
	lookInterval = 250 * time.Millisecond
	// quietAfter is how long ago a rank must have been seen to write to its page: at the
	// last look, which may be a little less than lookInterval ago.
	quietAfter = lookInterval / 2
	// effortWindow is the time over which a rank must have used effortTicks of
	// processor time, of a hundredth of a second each, to count as one that
	// computes: enough for one of thirty processes that share a processor, more
	// than a program needs that waits.
	effortWindow = time.Second
	effortTicks  = 2
	// stoppedLooks is how often in a row a rank is seen stopped until it counts:
	// a job that is suspended and resumed as a whole is not stopped.
	stoppedLooks = 3
)

// look is what the system says of a process at one moment.
type look struct {
	state rune   // as in /proc: R, S, D, T, …; 0 if it is not known
	ticks uint64 // of processor time
	bytes uint64 // read and written
	disk  bool   // one of its threads waits for a disk
}

// watcher follows the signs of life of one rank. Its methods are called by one
// goroutine; it has no clock.
type watcher struct {
	counts  statuspage.Counts
	moved   time.Time // when the page has last changed
	active  time.Time // when there was last any sign of life
	from    look      // at the begin of the window,
	since   time.Time // which is here
	stopped int       // looks in a row that saw the process stopped
}

// skip leaves d out of account, in which nobody has looked.
func (w *watcher) skip(d time.Duration) {
	for _, t := range []*time.Time{&w.moved, &w.active, &w.since} {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
}

// see takes what a rank's page says at time now. It is quiet if that is what it
// said before.
func (w *watcher) see(c statuspage.Counts, now time.Time) (quiet time.Duration) {
	if c != w.counts || w.moved.IsZero() {
		*w = watcher{counts: c, moved: now, active: now}
	}
	return now.Sub(w.moved)
}

// examine takes what the system says of a quiet rank.
func (w *watcher) examine(l look, now time.Time) {
	if l.state == 'T' {
		w.stopped++
	} else {
		if w.stopped >= stoppedLooks { // that it goes on is a sign of life
			w.active = now
		}
		w.stopped = 0
	}
	switch {
	case w.since.IsZero():
	case l.disk || l.state == 'D' || l.bytes != w.from.bytes || l.ticks >= w.from.ticks+effortTicks:
		w.active = now
	case now.Sub(w.since) < effortWindow:
		return
	}
	w.from, w.since = l, now
}

// vital is what the coordinator is told of the rank.
func (w *watcher) vital(now time.Time) rendezvous.Vital {
	return rendezvous.Vital{Quiet: now.Sub(w.moved), Idle: now.Sub(w.active), Halted: w.stopped > 0, Stopped: w.stopped >= stoppedLooks, Met: w.counts.Met[:]}
}

// watchRanks looks at all ranks that run and tells the coordinator of those
// that are quiet.
func (a *agent) watchRanks(now time.Time) {
	var seen []rendezvous.Vital
	late := a.late(now)
	for _, p := range a.procs {
		if p == nil || p.over {
			continue
		}
		p.watcher.skip(late)
		quiet := p.watcher.see(p.page.Counts(), now)
		if quiet < quietAfter {
			continue
		}
		l, err := lookAt(p.cmd.Process.Pid, quiet > effortWindow)
		if err != nil {
			a.cfg.Log.Debug("look at a rank", "rank", p.rank, "error", err) // it may just have ended
			continue
		}
		p.watcher.examine(l, now)
		v := p.watcher.vital(now)
		v.Rank, v.Pid, v.Disk = p.local, p.cmd.Process.Pid, l.disk
		if r, ok := p.page.Read(); ok {
			v.During = r.String()
		}
		seen = append(seen, v)
	}
	const fit = 4 // into a packet
	for len(seen) > 0 {
		n := min(fit, len(seen))
		a.apply(a.node.Vitals(seen[:n]))
		seen = seen[n:]
	}
}

// late is by how much this look at the ranks comes later than it should, if that is long: this
// process stood still, and perhaps the ranks with it, as where a batch system suspends a job.
func (a *agent) late(now time.Time) time.Duration {
	since := now.Sub(a.looked)
	first := a.looked.IsZero()
	if a.looked = now; first || since < 2*lookInterval {
		return 0
	}
	return since - lookInterval
}

// lookAt is what the system says of a process; of its threads only if asked.
func lookAt(pid int, threads bool) (look, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return look{}, err
	}
	l, err := parseStat(stat)
	if err != nil {
		return l, err
	}
	if io, err := os.ReadFile(dir + "/io"); err == nil { // else the other signs must do
		l.bytes = transferred(io)
	}
	if !threads {
		return l, nil
	}
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return l, err
	}
	for _, t := range tasks {
		stat, err := os.ReadFile(dir + "/task/" + t.Name() + "/stat")
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		one, _ := parseStat(stat)
		l.disk = l.disk || one.state == 'D'
	}
	return l, nil
}

// parseStat reads a stat file of /proc: the state is its third field, the
// processor time the sum of the 14th and 15th.
func parseStat(b []byte) (look, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // a name may hold anything
	if len(f) < 13 {
		return look{}, fmt.Errorf("%q is no state of a process", b)
	}
	user, err1 := strconv.ParseUint(string(f[11]), 10, 64)
	system, err2 := strconv.ParseUint(string(f[12]), 10, 64)
	return look{state: rune(f[0][0]), ticks: user + system}, errors.Join(err1, err2)
}

// transferred is the sum of rchar and wchar in an io file of /proc.
func transferred(b []byte) (sum uint64) {
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(": "))
		if string(key) == "rchar" || string(key) == "wchar" {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
			sum += n
		}
	}
	return sum
}
