package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
)

// elasticMode shares args[1] parts as soon as there are args[2] ranks, which it notes in
// the file args[3], and ends well when there are args[0] after that. Who comes late to
// the first epoch changes nothing. Asked to stop, it says so and is to be started again.
func elasticMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	want, err1 := strconv.Atoi(args[0])
	parts, err2 := strconv.Atoi(args[1])
	most, err3 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return 2, err
	}
	if g.Size() == most {
		if err := os.WriteFile(args[3], nil, 0o600); err != nil {
			return 1, err
		}
	}
	_, err := os.Stat(args[3])
	complete := err == nil
	if complete {
		if err := g.Share(ctx, parts); err != nil {
			return 1, err
		}
	}
	fmt.Printf("of %d: epoch %d\n", g.Size(), g.Restart())
	if complete && g.Restart() > 0 && g.Size() == want {
		err := g.Barrier(ctx, "done")
		fmt.Printf("done as one of %d\n", g.Size())
		return 0, errors.Join(err, g.Close())
	}
	select {
	case <-g.Done():
		return 1, g.Err()
	case <-g.StopRequested():
		return exitcode.Requeue, g.Close()
	case <-ctx.Done():
		return 9, ctx.Err()
	}
}

// sharing is the program of elasticMode: it is to end with want ranks, which share
// parts, once there have been most.
func sharing(t *testing.T, want, parts, most string) []string {
	t.Helper()
	return []string{"RANKS", "elastic", want, parts, most, t.TempDir() + "/complete"}
}

// meet waits until all jobs have a rank that knows of n.
func meet(all []*job, n int) {
	for _, j := range all {
		j.t.Helper()
		j.numbers(fmt.Sprintf("of %d: epoch", n), 1)
	}
}

// elastic starts node 0 of a job of least to most nodes, and n-1 others.
func elastic(t *testing.T, span string, n int, args ...string) []*job {
	t.Helper()
	all := []*job{start(t, secret, append([]string{"--nnodes", span, "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0"}, slices.Clone(args)...)...)}
	for len(all) < n {
		all = append(all, another(t, all[0], span, args...))
	}
	return all
}

// another starts one more node of the job of first.
func another(t *testing.T, first *job, span string, args ...string) *job {
	t.Helper()
	return start(t, secret, append([]string{"--nnodes", span, "--join", first.endpoint()}, slices.Clone(args)...)...)
}

var lossOf = regexp.MustCompile(`ddplaunch: epoch \d: node `)

// A node is lost: the others go on, without a restart being allowed.
func TestElasticLoss(t *testing.T) {
	t.Parallel()
	all := elastic(t, "2:3", 3, sharing(t, "2", "6", "3")...)
	meet(all, 3)
	if err := all[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*job{all[0], all[2]} {
		code, out := j.end()
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		want(t, out, "its launcher was killed, rank ", "done as one of 2\n")
		if !lossOf.MatchString(out) {
			t.Errorf("want %v in\n%s", lossOf, out)
		}
	}
}

// A node comes later and is taken in.
func TestElasticGrowth(t *testing.T) {
	t.Parallel()
	args := sharing(t, "2", "2", "2")
	all := elastic(t, "1:2", 1, args...)
	meet(all, 1)
	all = append(all, another(t, all[0], "1:2", args...))
	for _, j := range all {
		if code, out := j.end(); code != 0 || !strings.Contains(out, "done as one of 2\n") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	}
	want(t, all[0].output(), "ddplaunch: epoch 1: from 1 to 2 nodes, with ")
	want(t, all[1].output(), "ddplaunch: the job runs; this node is taken in when it is needed\n")
}

// Three nodes cannot share 8 parts: one is spare, takes the place of one that is
// lost, and ends with the job.
func TestElasticSpare(t *testing.T) {
	t.Parallel()
	all := elastic(t, "1:3", 3, sharing(t, "2", "8", "3")...)
	for _, j := range all {
		code, out := j.end()
		if code != 0 || spare(j) == strings.Contains(out, "done as one of 2\n") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	}
	want(t, all[0].output(), ": 3 ranks on 3 nodes cannot share 8 parts equally: 2 nodes go on\n")
}

func spare(j *job) bool {
	return strings.Contains(j.output(), "ddplaunch: this node is spare until it is needed: what the ranks share is in 8 parts\n")
}

// Node 0 is killed: the others end at once, to be started again.
func TestElasticOrphan(t *testing.T) {
	t.Parallel()
	all := elastic(t, "2:3", 3, sharing(t, "1", "6", "3")...)
	meet(all, 3)
	if err := all[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, j := range all[1:] {
		code, out := j.end()
		if took := time.Since(began); code != exitcode.Requeue || took > endsWithin {
			t.Errorf("exit code %d after %v, want %d", code, took, exitcode.Requeue)
		}
		want(t, out, "its launcher was killed, rank 0 and the coordinator with it\n")
	}
	t.Logf("ended after %v", time.Since(began))
}
