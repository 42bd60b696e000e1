// Package memory reads what the kernel says of memory: how much there is on this
// machine and for the control group of a process (version 2 or 1), and how many
// processes it has killed for want of it. It keeps nothing but where to look, so a
// Reader may be used by any number of goroutines.
package memory

import (
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Unlimited is the limit of a control group that has none: more than any machine has.
const Unlimited = math.MaxInt64

// Reader knows where the control group of a process is. Those of the same group are equal.
type Reader struct {
	root  string // "" but for tests: where proc and sys are
	group string // folder of the control group's memory, below root; "" if there is none
	v2    bool
}

// Open finds this process's control group. root is "", or where tests have their proc
// and sys.
func Open(root string) Reader { return open(root, "self") }

// Of finds that of another process, which must live.
func Of(root string, pid int) Reader { return open(root, strconv.Itoa(pid)) }

func open(root, process string) Reader {
	r := Reader{root: root}
	text, err := os.ReadFile(root + "/proc/" + process + "/cgroup")
	if err != nil {
		return r // no control groups in this kernel
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		file, mount := "memory.events", top
		if f[1] == "memory" {
			file, mount = "memory.oom_control", top+"/memory"
		} else if f[1] != "" {
			continue
		}
		// In a container the path may be that outside, and the mount its end.
		for _, dir := range []string{path.Join(mount, f[2]), mount} {
			if _, err := os.Stat(path.Join(root, dir, file)); err == nil {
				r.group, r.v2 = dir, f[1] == ""
				break
			}
		}
		if r.group != "" && !r.v2 {
			break // where both are mounted, memory is in version 1
		}
	}
	return r
}

// top is where control groups are mounted.
const top = "/sys/fs/cgroup"

// Machine is how many bytes this machine has; 0 if that is not known.
func (r Reader) Machine() int64 { return 1024 * int64(r.number("/proc/meminfo", "MemTotal:")) }

// Killed is how many processes the kernel has killed for want of memory: of the control
// group, and of the whole machine.
func (r Reader) Killed() (group, machine uint64) {
	machine = r.number("/proc/vmstat", "oom_kill")
	switch {
	case r.group == "":
	case r.v2:
		group = r.number(r.group+"/memory.events", "oom_kill")
	default:
		group = r.number(r.group+"/memory.oom_control", "oom_kill")
	}
	return group, machine
}

// Limit is the smallest limit that holds for the control group, in bytes: its own, or one
// of a group that it is in. It is Unlimited if there is none.
func (r Reader) Limit() int64 {
	least := int64(Unlimited)
	switch {
	case r.group == "":
	case r.v2:
		for dir := r.group; len(dir) >= len(top); dir = path.Dir(dir) {
			b, err := os.ReadFile(r.root + dir + "/memory.max")
			if err != nil {
				continue // the root has none
			}
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil { // else "max"
				least = min(least, n)
			}
		}
	default:
		if n := r.number(r.group+"/memory.stat", "hierarchical_memory_limit"); n > 0 {
			least = int64(min(n, Unlimited))
		}
	}
	return least
}

// number is the number behind a key in a file of keys and numbers; 0 if it is not there.
func (r Reader) number(file, key string) uint64 {
	b, err := os.ReadFile(r.root + file)
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
