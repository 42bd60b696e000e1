package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/supervise"
)

// What flags say is what the launcher is to do.
func TestParse(t *testing.T) {
	parsed := func(args string) options {
		t.Helper()
		o, err := parse(append(strings.Fields(args), "true"), nil, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return o
	}
	for args, want := range map[string][4]time.Duration{
		"":                                   {10 * time.Second, 600 * time.Second, 30 * time.Second, time.Minute},
		"--grace 1m30s --rdzv-timeout 5":     {90 * time.Second, 5 * time.Second, 30 * time.Second, time.Minute},
		"--stuck-after 0.5 --stop-before 2h": {10 * time.Second, 600 * time.Second, time.Second / 2, 2 * time.Hour},
		"--stuck-after 0 --stop-before 0s":   {10 * time.Second, 600 * time.Second, 0, 0},
	} {
		if o := parsed(args); [4]time.Duration{o.Grace, o.JoinWait, o.StuckAfter, o.StopBefore} != want {
			t.Errorf("%s: %v, %v, %v, %v, want %v", args, o.Grace, o.JoinWait, o.StuckAfter, o.StopBefore, want)
		}
	}
	// With a folder for logs both streams are shown and kept, unless flags say otherwise.
	for args, want := range map[string]supervise.Output{
		"":                         {},
		"--log-dir d":              {Dir: "d", Tee: supervise.Streams{All: 3}},
		"--log-dir d -r 1":         {Dir: "d", Redirect: supervise.Streams{All: 1}},
		"--log-dir d -r 1 -t 2":    {Dir: "d", Redirect: supervise.Streams{All: 1}, Tee: supervise.Streams{All: 2}},
		"--local-ranks-filter 1,0": {Filter: []int{1, 0}},
	} {
		if o := parsed("-nproc 2 " + args); fmt.Sprint(o.Output) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", args, o.Output, want)
		}
	}
	if o := parsed("--nnodes 2:3 --node-rank 0 --port-range 30000:30010 --gather-output -nproc auto"); o.Least != 2 || o.Nodes != 3 || o.NodeRank != 0 || o.Ports.String() != "30000:30010" || !o.Gather || o.Nproc < 1 {
		t.Errorf("got %+v", o)
	}
	for _, s := range []string{"CHLD", "URG", "PIPE", "STOP", "KILL"} {
		if o, err := parse([]string{"--signals-to-handle", s, "true"}, nil, io.Discard); err == nil {
			t.Errorf("signal %s is to be handled: %v", s, o.Signals)
		}
	}
}

// In a step of Slurm's the launchers are its tasks, one on each node: what contradicts that is
// refused, and so is a launcher alone in a job of several nodes.
func TestParseInStep(t *testing.T) {
	const job = "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2"
	const step = job + " SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_PROCID=1 SLURM_NODEID=1 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_STEP_NODELIST=n[0-1] SLURMD_NODENAME=n1"
	shared := strings.NewReplacer("NUM_NODES=2", "NUM_NODES=1", "NODEID=1", "NODEID=0", "LOCALID=0", "LOCALID=1", "1(x2)", "2", "n[0-1]", "n1").Replace(step)
	for _, tt := range []struct{ environ, args, want string }{
		{step, "", "nodes 2 to 2, this is 1, at n0, gathered true"},
		{step, "--nnodes 2", "nodes 2 to 2, this is 1, at n0, gathered true"},
		{step, "--rdzv-endpoint n0:4000 --gather-output=false", "nodes 2 to 2, this is 1, at n0:4000, gathered false"},
		{step, "--nnodes 1:2", "nodes 1 to 2, this is 1, at n0, gathered true"},
		{step, "--standalone", "nodes 1 to 1, this is 0, at , gathered false"},
		{job, "--nnodes 1", "nodes 1 to 1, this is 0, at , gathered false"},
		{job, "--standalone", "nodes 1 to 1, this is 0, at , gathered false"},
		{job, "", "the job has 2 nodes, but ddplaunch was not started by srun"},
		{step, "--nnodes 3", "--nnodes 3, but srun has started ddplaunch on 2 nodes"},
		{step + " EBTRAIN_GROUP=slurm-7.0-e0", "", "this ddplaunch was started by a rank of a job that srun has started: leave one of the two launchers out, or give --standalone"},
		{step + " EBTRAIN_GROUP=slurm-7.0-e0", "--standalone", "nodes 1 to 1, this is 0, at , gathered false"},
		{shared, "", "srun has started several ddplaunch on one node: want one on each (srun --nodes=1 --ntasks=1), or"},
	} {
		o, err := parse(append(strings.Fields(tt.args), "true"), strings.Fields(tt.environ), io.Discard)
		got := fmt.Sprintf("nodes %d to %d, this is %d, at %s, gathered %v", o.Least, o.Nodes, o.NodeRank, o.Endpoint, o.Gather)
		if err != nil {
			got = err.Error()
		}
		if st, serr := os.Stdout.Stat(); serr == nil && st.Mode().IsRegular() { // each task keeps its own
			got, tt.want = strings.Replace(got, "gathered true", "gathered false", 1), strings.Replace(tt.want, "gathered true", "gathered false", 1)
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("ddplaunch %s: %s, want %s", tt.args, got, tt.want)
		}
	}
}

// Where there is no GPU, as many as there are (auto) is one rank.
func TestCountProcs(t *testing.T) {
	for s, want := range map[string]int{"auto": 1, "AUTO": 1, "3": 3, "1024": 1024} {
		if n, err := countProcs(s, []string{"CUDA_VISIBLE_DEVICES="}); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", s, n, err, want)
		}
	}
	if n, err := countProcs("gpu", []string{"CUDA_VISIBLE_DEVICES=0,1"}); err != nil || n != 2 {
		t.Errorf("gpu: %d, %v", n, err)
	}
	if _, err := countProcs("gpu", []string{"CUDA_VISIBLE_DEVICES="}); err == nil || !slices.Contains(strings.Fields(err.Error()), "gpu:") {
		t.Errorf("got %v", err)
	}
}
