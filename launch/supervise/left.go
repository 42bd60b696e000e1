package supervise

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	// leftWait is how long they may take to end, in looks that count as leftTurn at most: on a
	// busy machine a look may take longer, in which the one before has had no effect yet.
	leftWait = time.Second
	leftTurn = 50 * time.Millisecond
	// quietLooks is how often none may be found, in a row, until there are none.
	quietLooks = 3
)

// endLeft kills the children of the process that parent names which ranks of these jobs
// have left, and their children, until none were found so often. It says which have ended.
// Those of behind are let be.
func endLeft(parent func() int, jobs map[string]bool, behind map[int]bool, quiet int) (ended []string) {
	var seen, left []int
	names := map[int]string{}
	for waited := time.Duration(0); quiet > 0 && waited < leftWait; {
		begun := time.Now()
		left = slices.DeleteFunc(leftTo(parent(), jobs), func(pid int) bool { return behind[pid] })
		if quiet--; len(left) > 0 {
			quiet = quietLooks
		}
		for _, pid := range left {
			if names[pid] == "" {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may just have ended
				names[pid], seen = fmt.Sprintf("%s (pid %d)", bytes.TrimSpace(name), pid), append(seen, pid)
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for _, pid := range seen {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // of a guard's none is its child
			if !over(pid) {
				quiet = quietLooks // it has not left its children to its parent yet
			}
		}
		time.Sleep(2 * time.Millisecond)
		waited += min(time.Since(begun), leftTurn)
	}
	for _, pid := range seen {
		if !slices.Contains(left, pid) {
			ended = append(ended, names[pid])
		}
	}
	return ended
}

// over says that a process has ended, with all its threads: what it had started is its parent's.
// The first of them is a zombie before the others have, which may take long where there is much
// memory to take back.
func over(pid int) bool {
	state, _, _ := kin(pid)
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none if it is gone
	return state == "" || state == "Z" && len(threads) <= 1
}

// leftTo are the children of a process that ranks of these jobs have left. Zombies have no
// environment any more.
func leftTo(parent int, jobs map[string]bool) (pids []int) {
	all, _ := os.ReadDir("/proc") // without it nobody is known
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, of, _ := kin(pid); of != parent {
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

// kin is the state of a process, its parent and its group; zeros if they are not known.
func kin(pid int) (state string, parent, group int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, _ = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent, &group) // a name may have spaces and brackets
	return state, parent, group
}

// reapOrphans reaps the orphans of ranks (see adopt) that have ended: while the job goes on
// they would stay, and count, as zombies. Others wait for those of known, and for what is in
// this process's own group, where orphans of ranks are not.
func reapOrphans(known map[int]bool) {
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || ended.Signo == 0 {
		return // as mostly, nobody has
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children") // a kernel may not have them
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(word)
			if state, _, group := kin(pid); state == "Z" && group != unix.Getpgrp() && !known[pid] {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
}

// known are the children that others wait for.
func (a *agent) known() map[int]bool {
	all := map[int]bool{a.guard.cmd.Process.Pid: true}
	for _, p := range a.procs {
		if p != nil {
			all[p.cmd.Process.Pid] = true
		}
	}
	return all
}

// endLeft ends what ranks of the epoch, all of which have ended, have left running.
func (a *agent) endLeft() {
	if a.job == "" {
		return
	}
	jobs := map[string]bool{a.job: true}
	ended, behind := make(chan []string, 1), maps.Clone(a.behind)
	go func() { ended <- endLeft(os.Getpid, jobs, behind, 1) }()
	select {
	case all := <-ended:
		if len(all) > 0 {
			a.console.say(fmt.Sprintf("ended what ranks have left running: %s; start what is to live on with env -u %s", strings.Join(all, ", "), env.GroupVar))
		}
	case <-time.After(10 * leftWait): // one that waits in the kernel
	}
}
