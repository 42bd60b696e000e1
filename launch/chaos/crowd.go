package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	endShare       float64       // and from then on to its end
}

// crowds has crowds of each number of launchers, on as many hosts as there are, and
// sets what they take beside what is forecast if that is asked for.
func crowds(w *workshop, r *result) (j *job, err error) {
	seen := map[int][]crowdSeen{}
	sizes := w.crowds
	if w.forecast {
		sizes = append(slices.Repeat(fitted, fittedTimes), sizes...)
	}
	for _, n := range sizes {
		if j != nil {
			r.left = append(r.left, j.end()...)
		}
		var one crowdSeen
		if one, j, err = w.crowd(r, n); err != nil {
			return j, err
		}
		seen[n] = append(seen[n], one)
	}
	if w.forecast {
		measured := map[int]crowdSeen{}
		for n, all := range seen {
			measured[n] = middle(all)
		}
		c, err := messageCosts()
		if err != nil {
			return j, err
		}
		if r.notes, err = foretell(c, runtime.NumCPU(), measured, w.crowds, mostLaunchers); err != nil {
			return j, err
		}
	}
	return j, err
}

// middle is the median of each number of crowds of one size.
func middle(all []crowdSeen) crowdSeen {
	of := func(get func(crowdSeen) time.Duration) time.Duration {
		var v []time.Duration
		for _, s := range all {
			v = append(v, get(s))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	share := func(get func(crowdSeen) float64) float64 {
		return of(func(s crowdSeen) time.Duration { return time.Duration(get(s) * float64(time.Second)) }).Seconds()
	}
	m := crowdSeen{launchers: all[0].launchers}
	m.Joined = of(func(s crowdSeen) time.Duration { return s.Joined })
	m.Ended = of(func(s crowdSeen) time.Duration { return s.Ended })
	m.start = of(func(s crowdSeen) time.Duration { return s.start })
	m.coord = of(func(s crowdSeen) time.Duration { return s.coord })
	m.end = of(func(s crowdSeen) time.Duration { return s.end })
	m.share = share(func(s crowdSeen) float64 { return s.share })
	m.endShare = share(func(s crowdSeen) float64 { return s.endShare })
	return m
}

// crowdBar is the bar of a crowd's times after the last launcher's start, and after the death; 0 for
// more launchers than two processors can be asked to have.
func crowdBar(launchers int) time.Duration {
	if launchers > 128 {
		return 0
	}
	return 2 * time.Second
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
	r.measure(who+"after the last's", time.Since(last), crowdBar(n))
	spent, coord := j.processorTime()
	seen.coord, seen.start = coord, (spent-coord)/time.Duration(max(1, n-1))
	seen.share = left(spent+idleTime()-idle, seen.Joined)

	victim := 1 + w.made%(n-1)
	begun, idle = time.Now(), idleTime()
	if err := j.nodes[victim].cmd.Process.Kill(); err != nil {
		return seen, j, err
	}
	seen.Ended, err = j.closing(r, j.without(victim), begun, 1, `^node \d+ \(node\d\): its launcher was killed, rank \d+ with it$`)
	r.measure(who+"all launchers ended", seen.Ended, crowdBar(n))
	var total time.Duration
	for _, k := range j.nodes {
		if k.ended() {
			total += k.cmd.ProcessState.UserTime() + k.cmd.ProcessState.SystemTime()
		}
	}
	seen.end = max(0, total-spent) / time.Duration(n)
	seen.endShare = left(max(0, total-spent)+idleTime()-idle, seen.Ended)
	return seen, j, errors.Join(err, j.blamedOne(victim))
}

// left is the share of all processors that own and idle time of them are in a while.
func left(ownAndIdle, while time.Duration) float64 {
	return min(1, ownAndIdle.Seconds()/(while.Seconds()*float64(runtime.NumCPU())))
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
