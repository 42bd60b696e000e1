package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// What ranks leave running: a process that is in a session of its own, as daemons are,
// is in no rank's group. Once those that have started it have ended it is a child of the
// launcher (see adopt), and with that of whoever is the guard's parent then. It is known
// by the environment of its rank: what is to live on is started without it.

const (
	// leftWait is how long they may take to end.
	leftWait = time.Second
	// quietLooks is how often none may be found, in a row, until there are none: who has
	// just been killed may not have left its children to its parent yet.
	quietLooks = 3
)

// endLeft kills the children of the process that parent names which ranks of these jobs
// have left, and their children, until none were found so often. It says which.
func endLeft(parent func() int, jobs map[string]bool, quiet int) (ended []string) {
	seen := map[int]bool{}
	for deadline := time.Now().Add(leftWait); quiet > 0 && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left := leftTo(parent(), jobs)
		if quiet--; len(left) > 0 {
			quiet = quietLooks
		}
		for _, pid := range left {
			if !seen[pid] {
				seen[pid] = true
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may just have ended
				ended = append(ended, fmt.Sprintf("%s (pid %d)", bytes.TrimSpace(name), pid))
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for pid := range seen {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // of a guard's none is its child
		}
	}
	return ended
}

// leftTo are the children of a process that ranks of these jobs have left. Zombies have no
// environment any more.
func leftTo(parent int, jobs map[string]bool) (pids []int) {
	all, _ := os.ReadDir("/proc") // without it nobody is known
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || parentOf(pid) != parent {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for kv := range strings.SplitSeq(string(environ), "\x00") {
			if job, ok := strings.CutPrefix(kv, env.GroupVar+"="); ok && jobs[job] {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// parentOf is who a process is a child of, 0 if that is not known.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // a name may have spaces and brackets
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// endLeft ends what ranks of the epoch, all of which have ended, have left running.
func (a *agent) endLeft() {
	if a.job == "" {
		return
	}
	jobs := map[string]bool{a.job: true}
	ended := make(chan []string, 1)
	go func() { ended <- endLeft(os.Getpid, jobs, 1) }()
	select {
	case all := <-ended:
		if len(all) > 0 {
			a.console.say(fmt.Sprintf("ended what ranks have left running: %s; start what is to live on with env -u %s", strings.Join(all, ", "), env.GroupVar))
		}
	case <-time.After(2 * leftWait): // one that waits in the kernel
	}
}
