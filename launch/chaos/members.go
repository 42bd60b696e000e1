package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ebtrain/launch/exitcode"
)

// Launchers that go and come.

// recovers waits until a job trains in another epoch.
func (j *job) recovers(r *result, begun time.Time, epoch string) error {
	if err := j.await(epoch, func() bool { return strings.Contains(j.nodes[0].out.String(), "ddplaunch: "+epoch) }); err != nil {
		return err
	}
	if err := j.await("ranks of the new epoch", func() bool {
		return slices.ContainsFunc(j.ranks(), func(k rank) bool { return environOf(k.pid)["EBTRAIN_EPOCH"] == "1" })
	}); err != nil {
		return err
	}
	file := filepath.Join(j.dir, "run", "metrics.jsonl")
	before, _ := os.Stat(file)
	if err := j.await("step", func() bool {
		now, err := os.Stat(file)
		return err == nil && (before == nil || now.Size() > before.Size() || now.ModTime().After(before.ModTime()) && now.Size() != before.Size())
	}); err != nil {
		return err
	}
	r.measure("the next step", time.Since(begun), 0)
	return j.awaitSteps(3)
}

// asked stops a job that has lost some nodes.
func (j *job) asked(r *result, nodes []*node) error {
	begun := time.Now()
	if err := j.stop(); err != nil {
		return err
	}
	if _, err := j.ends(nodes, begun); err != nil {
		return err
	}
	for _, n := range nodes {
		r.exits = append(r.exits, n.code)
		if n.code != exitcode.Requeue {
			r.fault("exit code %d of %s, want %d", n.code, n.host.Name, exitcode.Requeue)
		}
	}
	return nil
}

func shrink(w *workshop, r *result) (*job, error) {
	j, err := w.start("--nnodes", fmt.Sprintf("2:%d", w.hosts))
	if err != nil {
		return j, err
	}
	victim := 1 + w.made%(w.hosts-1)
	begun := time.Now()
	defer func() { _ = w.net.Plug(victim, true) }() // the next trial would say so
	if err := w.net.Plug(victim, false); err != nil {
		return j, err
	}
	if err := j.recovers(r, begun, fmt.Sprintf("epoch 1: node %d (node%d): lost with rank", victim, victim)); err != nil {
		return j, err
	}
	return j, j.asked(r, j.without(victim))
}

func grow(w *workshop, r *result) (*job, error) {
	j, err := w.newJob("--nnodes", fmt.Sprintf("1:%d", w.hosts))
	if err != nil {
		return j, err
	}
	if err := errors.Join(j.launch(0, nil), j.awaitStep(3)); err != nil {
		return j, err
	}
	begun := time.Now()
	for i := 1; i < w.hosts; i++ {
		if err := j.launch(i, nil); err != nil {
			return j, err
		}
	}
	if err := j.recovers(r, begun, fmt.Sprintf("epoch 1: from 1 to %d nodes, with ", w.hosts)); err != nil {
		return j, err
	}
	return j, j.asked(r, j.nodes)
}

func twice(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	begun := time.Now()
	if err := j.launch(1, nil); err != nil {
		return j, err
	}
	extra := j.nodes[len(j.nodes)-1]
	took, err := j.ends([]*node{extra}, begun)
	if err != nil {
		return j, err
	}
	r.measure("it is refused", took, 0)
	if extra.code != 1 || !strings.Contains(extra.out.String(), "the coordinator refuses this node: the job is already complete and running") {
		r.fault("the one too many ended with %d: %s", extra.code, extra.out)
	}
	j.nodes = j.nodes[:len(j.nodes)-1]
	return j, j.goesOn(r)
}

func late(w *workshop, r *result) (*job, error) {
	j, err := w.newJob()
	if err != nil {
		return j, err
	}
	for i := range w.net.Hosts {
		if i == w.hosts-1 {
			if err := w.pause(2 * time.Second); err != nil {
				return j, err
			}
		}
		if err := j.launch(i, nil); err != nil {
			return j, err
		}
	}
	if err := j.awaitStep(3); err != nil {
		return j, err
	}
	return j, j.goesOn(r)
}

func replace(w *workshop, r *result) (*job, error) {
	j, err := w.start("--max-restarts", "1")
	if err != nil {
		return j, err
	}
	begun := time.Now()
	if err := j.nodes[1].cmd.Process.Kill(); err != nil {
		return j, err
	}
	if err := j.launch(1, nil); err != nil {
		return j, err
	}
	if err := j.recovers(r, begun, "restart 1: node 1 (node1): its launcher was killed, rank"); err != nil {
		return j, err
	}
	return j, j.asked(r, j.without(1))
}
