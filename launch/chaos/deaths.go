package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"ebtrain/launch/exitcode"
)

// Deaths, and what is like them: the job ends.

func kill(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim := ranks[len(ranks)-1-w.made%len(ranks)]
	begun := time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 50*time.Millisecond)
	took, err := j.closing(r, j.nodes, begun, 137, fmt.Sprintf(`^rank %d \(node%d, pid %d\): killed by SIGKILL`, victim.rank, victim.node, victim.pid))
	r.measure("launchers ended", took, 0)
	return j, err
}

func killLauncher(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	// The numbers of nodes follow the names of hosts.
	ranks, victim := j.ranks(), 1+w.made%(w.hosts-1)
	begun := time.Now()
	if err := j.nodes[victim].cmd.Process.Kill(); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 200*time.Millisecond)
	took, err := j.closing(r, j.without(victim), begun, 1, fmt.Sprintf(`^node %d \(node%d\): its launcher was killed, rank`, victim, victim))
	r.measure("launchers ended", took, 0)
	return j, err
}

func killNode0(w *workshop, r *result) (*job, error) {
	j, err := w.start("--nnodes", fmt.Sprintf("2:%d", w.hosts))
	if err != nil {
		return j, err
	}
	ranks, begun := j.ranks(), time.Now()
	if err := j.nodes[0].cmd.Process.Kill(); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 0)
	took, err := j.closing(r, j.nodes[1:], begun, exitcode.Requeue, `^node 0 \(node0\): its launcher was killed, ranks? \S+ and the coordinator with it$`)
	r.measure("launchers ended", took, time.Second)
	return j, err
}

func stopRank(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	ranks := j.ranks()
	victim := ranks[w.made%len(ranks)]
	begun := time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGSTOP); err != nil {
		return j, err
	}
	gone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("all ranks gone", gone, 2*time.Second)
	took, err := j.closing(r, j.nodes, begun, 1, fmt.Sprintf(`^rank %d \(node%d, pid %d\): stopped by a signal.* for it`, victim.rank, victim.node, victim.pid))
	r.measure("launchers ended", took, 0)
	return j, err
}

func cut(w *workshop, r *result) (*job, error) {
	j, err := w.start()
	if err != nil {
		return j, err
	}
	victim := w.made % w.hosts
	ranks, begun := j.ranks(), time.Now()
	defer func() { _ = w.net.Plug(victim, true) }() // the next trial would say so
	if err := w.net.Plug(victim, false); err != nil {
		return j, err
	}
	gone, err := j.gone(slices.DeleteFunc(slices.Clone(ranks), func(k rank) bool { return k.node == victim }), begun)
	if err != nil {
		return j, err
	}
	r.measure("survivors' ranks gone", gone, 1200*time.Millisecond)
	alone, err := j.gone(ranks, begun)
	if err != nil {
		return j, err
	}
	r.measure("those of the one cut off", alone, 2*time.Second)
	says := fmt.Sprintf(`^node %d \(node%d\): lost with rank`, victim, victim)
	others, err := j.closing(r, j.without(victim), begun, 1, says)
	if err != nil {
		return j, err
	}
	says = fmt.Sprintf(`^node %d \(node%d\) reaches none of the other %d nodes$`, victim, victim, w.hosts-1)
	own, err := j.closing(r, j.nodes[victim:victim+1], begun, 1, says)
	r.measure("launchers ended", max(others, own), 0)
	return j, err
}
