package supervise

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// oomRefresh is the age at which a count of kills becomes the one that later
// counts are compared with: a kill is found if it happened less than this, and
// at most twice this, before it is asked for.
const oomRefresh = time.Second

// machineShare is the part of the machine's memory, one in so many, that a process has
// at least, if it is killed because the machine has no more.
const machineShare = 100

// oomWatch counts the processes that the kernel has killed for want of memory:
// in the control group of this process, which is that of the ranks, and on the
// whole machine. It has no clock, and is used by one goroutine.
type oomWatch struct {
	root    string // "" but for tests: where proc and sys are
	group   string // folder of the control group's memory; "" if there is none
	v2      bool
	old     kills // the one to compare with,
	last    kills // and the one that will be
	started bool
}

// kills are counts at one moment.
type kills struct {
	at             time.Time
	group, machine uint64
}

// newOOMWatch finds this process's control group, in version 2 or 1.
func newOOMWatch(root string) *oomWatch {
	w := &oomWatch{root: root}
	text, err := os.ReadFile(root + "/proc/self/cgroup")
	if err != nil {
		return w // no control groups in this kernel
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		file, mount := "memory.events", "/sys/fs/cgroup"
		if f[1] == "memory" {
			file, mount = "memory.oom_control", "/sys/fs/cgroup/memory"
		} else if f[1] != "" {
			continue
		}
		// In a container the path may be that outside, and the mount its end.
		for _, dir := range []string{path.Join(root, mount, f[2]), path.Join(root, mount)} {
			if _, err := os.Stat(dir + "/" + file); err == nil {
				w.group, w.v2 = dir, f[1] == ""
				break
			}
		}
		if w.group != "" && !w.v2 {
			break // where both are mounted, memory is in version 1
		}
	}
	return w
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
	k := kills{at: now, machine: w.number("/proc/vmstat", "oom_kill")}
	if w.group != "" {
		file := "/memory.oom_control"
		if w.v2 {
			file = "/memory.events"
		}
		k.group = w.number(strings.TrimPrefix(w.group, w.root)+file, "oom_kill")
	}
	return k
}

// happened says, if the kernel has just killed a process for want of memory,
// how: of a process that was killed by SIGKILL and had used so many bytes.
func (w *oomWatch) happened(used int64, now time.Time) string {
	k := w.count(now)
	const sentence = "out of memory: killed by the kernel, using %s; %s"
	all := 1024 * int64(w.number("/proc/meminfo", "MemTotal:"))
	machine := "this machine has " + mebibytes(all)
	switch {
	case !w.started:
		return ""
	case k.group > w.old.group: // for its own limit, or with the whole machine full
		if n := w.limit(); n < all {
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

// limit is the smallest that holds for the control group, in bytes: more than any
// machine has if there is none.
func (w *oomWatch) limit() int64 {
	if !w.v2 {
		return int64(min(w.number(strings.TrimPrefix(w.group, w.root)+"/memory.stat", "hierarchical_memory_limit"), math.MaxInt64))
	}
	least := int64(math.MaxInt64)
	for dir := w.group; len(dir) >= len(w.root+"/sys/fs/cgroup"); dir = path.Dir(dir) {
		b, err := os.ReadFile(dir + "/memory.max")
		if err != nil {
			continue // the root has none
		}
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil { // else "max"
			least = min(least, n)
		}
	}
	return least
}

// number is the number behind a key in a file of keys and numbers; 0 if it is
// not there.
func (w *oomWatch) number(file, key string) uint64 {
	b, err := os.ReadFile(w.root + file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == key {
			n, _ := strconv.ParseUint(string(f[1]), 10, 64)
			return n
		}
	}
	return 0
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }
