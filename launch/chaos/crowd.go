package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"ebtrain/launch/forecast"
)

// crowdSeen is what was measured of a crowd.
type crowdSeen struct {
	forecast.Times // Joined and Ended
	launchers      int
	start          time.Duration // processor time until the ranks ran, of a launcher that does not coordinate, and its rank
	coord          time.Duration // and of the one that does
	end            time.Duration // what a launcher took from then on to its end
	share          float64       // of the processors, what was left to it until the ranks ran
}

// crowds has crowds of each number of launchers, on as many hosts as there are, and
// sets what they take beside what is forecast if that is asked for.
func crowds(w *workshop, r *result) (j *job, err error) {
	measured := map[int]crowdSeen{}
	sizes := w.crowds
	if w.forecast {
		sizes = append(fitted[:len(fitted):len(fitted)], sizes...)
	}
	for _, n := range sizes {
		if j != nil {
			r.left = append(r.left, j.end()...)
		}
		if measured[n], j, err = w.crowd(r, n); err != nil {
			return j, err
		}
	}
	if w.forecast {
		r.notes, err = foretell(measured, w.crowds, mostLaunchers)
	}
	return j, err
}

// crowd has n launchers, of a rank each that does nothing, make a job, and kills one.
func (w *workshop) crowd(r *result, n int) (seen crowdSeen, j *job, err error) {
	if j, err = w.newJob(); err != nil {
		return seen, j, err
	}
	j.patience = 3 * patience
	seen.launchers = n
	at := fmt.Sprintf("%s:%d", w.net.Hosts[0].Addr, port)
	begun, idle := time.Now(), idleTime()
	for i := range n {
		args := []string{w.launcher, "-nproc", "1", "--nnodes", fmt.Sprint(n), "--rdzv-timeout", j.patience.String()}
		if i == 0 {
			args = append(args, "--node-rank", "0", "--rdzv-endpoint", at)
		} else {
			args = append(args, "--join", at)
		}
		if err := j.exec(w.net.Hosts[i%w.hosts], append(args, "sh", "-c", "echo up; exec sleep 1000"), nil); err != nil {
			return seen, j, err
		}
	}
	last := time.Now()
	up := 0 // so many launchers have said so
	if err := j.await("crowd", func() bool {
		for up < len(j.nodes) && strings.Contains(j.nodes[up].out.String(), "up\n") {
			up++
		}
		return up == len(j.nodes)
	}); err != nil {
		return seen, j, err
	}
	seen.Joined = time.Since(begun)
	who := fmt.Sprintf("%d: ", n)
	r.measure(who+"ranks run, after the first launcher's start", seen.Joined, 0)
	r.measure(who+"after the last's", time.Since(last), 2*time.Second)
	spent, coord := j.processorTime()
	seen.coord, seen.start = coord, (spent-coord)/time.Duration(max(1, n-1))
	whole := seen.Joined * time.Duration(runtime.NumCPU())
	seen.share = min(1, (spent+idleTime()-idle).Seconds()/whole.Seconds())

	victim := 1 + w.made%(n-1)
	begun = time.Now()
	if err := j.nodes[victim].cmd.Process.Kill(); err != nil {
		return seen, j, err
	}
	seen.Ended, err = j.closing(r, j.without(victim), begun, 1, `^node \d+ \(node\d\): its launcher was killed, rank \d+ with it$`)
	r.measure(who+"all launchers ended", seen.Ended, 2*time.Second)
	var total time.Duration
	for _, k := range j.nodes {
		if k.ended() {
			total += k.cmd.ProcessState.UserTime() + k.cmd.ProcessState.SystemTime()
		}
	}
	seen.end = max(0, total-spent) / time.Duration(n)
	return seen, j, errors.Join(err, j.blamedOne(victim))
}

// blamedOne is an error unless all launchers but the victim blame the same one.
func (j *job) blamedOne(victim int) error {
	blamed := map[string]bool{}
	for _, n := range j.without(victim) {
		for line := range strings.Lines(n.out.String()) {
			if strings.Contains(line, "its launcher was killed") {
				blamed[line] = true
			}
		}
	}
	if len(blamed) != 1 {
		return fmt.Errorf("%d launchers were blamed for one: %v", len(blamed), blamed)
	}
	return nil
}
