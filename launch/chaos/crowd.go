package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// launchersOfCrowd is how many launchers a crowd has, on as many hosts as there are.
const launchersOfCrowd = 128

// crowd has many launchers, of a rank each that does nothing, make a job, and kills one.
func crowd(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	at := fmt.Sprintf("%s:%d", w.net.hosts[0].addr, port)
	begun := time.Now()
	for i := range launchersOfCrowd {
		args := []string{w.launcher, "-nproc", "1", "--nnodes", fmt.Sprint(launchersOfCrowd), "--rdzv-timeout", "30s"}
		if i == 0 {
			args = append(args, "--node-rank", "0", "--rdzv-endpoint", at)
		} else {
			args = append(args, "--join", at)
		}
		if err := j.exec(w.net.hosts[i%w.hosts], append(args, "sh", "-c", "echo up; exec sleep 1000"), nil); err != nil {
			return j, err
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
		return j, err
	}
	r.measure("ranks run, after the first launcher's start", time.Since(begun), 0)
	r.measure("after the last's", time.Since(last), 2*time.Second)
	victim := 1 + w.made%(launchersOfCrowd-1)
	begun = time.Now()
	if err := j.nodes[victim].cmd.Process.Kill(); err != nil {
		return j, err
	}
	took, err := j.closing(r, j.without(victim), begun, 1, `^node \d+ \(node\d\): its launcher was killed, rank \d+ with it$`)
	r.measure("all launchers ended", took, 2*time.Second)
	blamed := map[string]bool{}
	for _, n := range j.without(victim) {
		for line := range strings.Lines(n.out.String()) {
			if strings.Contains(line, "its launcher was killed") {
				blamed[line] = true
			}
		}
	}
	if len(blamed) != 1 {
		err = errors.Join(err, fmt.Errorf("%d launchers were blamed for one: %v", len(blamed), blamed))
	}
	return j, err
}
