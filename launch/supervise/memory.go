package supervise

import (
	"fmt"
	"time"

	"ebtrain/launch/memory"
)

// oomRefresh is the age at which a count of kills becomes the one that later
// counts are compared with: a kill is found if it happened less than this, and
// at most twice this, before it is asked for.
const oomRefresh = time.Second

// machineShare is the part of the machine's memory, one in so many, that a process has
// at least, if it is killed because the machine has no more.
const machineShare = 100

// oomWatch counts the processes that the kernel has killed for want of memory:
// in the control group of this process, which is that of the ranks as a rule, and on the
// whole machine. It has no clock, and is used by one goroutine.
type oomWatch struct {
	from    memory.Reader
	old     kills // the one to compare with,
	last    kills // and the one that will be
	started bool
}

// kills are counts at one moment.
type kills struct {
	at             time.Time
	group, machine uint64
}

// newOOMWatch begins to look, see memory.Open.
func newOOMWatch(root string) *oomWatch { return &oomWatch{from: memory.Open(root)} }

// outside is the watch of the control group that process pid is in, if that is not the one
// of w: a rank's program may enter one of its own. It is nil otherwise.
func (w *oomWatch) outside(root string, pid int) *oomWatch {
	if r := memory.Of(root, pid); r != w.from {
		return &oomWatch{from: r}
	}
	return nil
}

// watchMemory looks at the control groups of ranks that are not in the launcher's.
func (a *agent) watchMemory(now time.Time) {
	a.memory.refresh(now)
	for _, p := range a.procs {
		if p == nil || p.over {
			continue
		}
		if p.memory == nil {
			p.memory = a.memory.outside("", p.cmd.Process.Pid)
		}
		if p.memory != nil {
			p.memory.refresh(now)
		}
	}
}

// outOfMemory says how p was killed, if that was for want of memory.
func (a *agent) outOfMemory(p *process, now time.Time) string {
	if p.memory != nil {
		if why := p.memory.happened(p.peak(), now); why != "" {
			return why
		}
	}
	return a.memory.happened(p.peak(), now)
}

// refresh is to be called now and then.
func (w *oomWatch) refresh(now time.Time) {
	switch {
	case !w.started:
		w.last = w.count(now)
		w.old, w.started = w.last, true
	case now.Sub(w.last.at) >= oomRefresh:
		w.old, w.last = w.last, w.count(now)
	}
}

func (w *oomWatch) count(now time.Time) kills {
	group, machine := w.from.Killed()
	return kills{now, group, machine}
}

// happened says, if the kernel has just killed a process for want of memory,
// how: of a process that was killed by SIGKILL and had used so many bytes.
func (w *oomWatch) happened(used int64, now time.Time) string {
	k := w.count(now)
	const sentence = "out of memory: killed by the kernel, using %s; %s"
	all := w.from.Machine()
	machine := "this machine has " + mebibytes(all)
	switch {
	case !w.started:
		return ""
	case k.group > w.old.group: // for its own limit, or with the whole machine full
		if n := w.from.Limit(); n < all {
			return fmt.Sprintf(sentence, mebibytes(used), "the limit of its control group is "+mebibytes(n))
		}
		return fmt.Sprintf(sentence, mebibytes(used), machine+", and its control group no limit that is known here")
	case k.machine > w.old.machine:
		// The count is everybody's, also of groups with limits of their own. Where the
		// machine itself is full, the kernel takes what is large.
		if used >= all/machineShare {
			return fmt.Sprintf(sentence, mebibytes(used), machine)
		}
	}
	return ""
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }
