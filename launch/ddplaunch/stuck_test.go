package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// stuckMode has every rank but 1 wait in a collective that rank 1 does not come
// to: it sleeps, or computes until the file args[1] is there and then comes.
func stuckMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	if g.Rank() != 1 {
		g.Began(rendezvous.Collective{Seq: 7, Kind: "all-reduce", Op: "mean", Type: "f32", Len: 10, Label: "bucket 0", Begun: time.Now()})
		g.Progress(3, "all-reduce", 7, "bucket 0")
		settled()
		if args[0] == "computes" {
			return 0, g.Barrier(ctx, "done")
		}
	} else {
		g.Began(rendezvous.Collective{Seq: 6, Kind: "barrier", Begun: time.Now()})
		g.Ended(6, false)
		g.Progress(3, "load", 0, "")
		settled()
		if args[0] == "computes" {
			for err := error(os.ErrNotExist); err != nil; _, err = os.Stat(args[1]) {
				for begun := time.Now(); time.Since(begun) < 5*time.Millisecond; {
				}
			}
			return 0, g.Barrier(ctx, "done")
		}
	}
	select {
	case <-g.Done():
		return 1, g.Err()
	case <-ctx.Done():
		return 9, ctx.Err()
	}
}

// settled says that this rank is where a test wants it.
func settled() { fmt.Printf("settled %d\n", os.Getpid()) }

// A rank that is stopped ends the job at once, on one node and on two, whichever
// it is, and all say so.
func TestStoppedRank(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, hosts := range []int{1, 2} {
		t.Run(fmt.Sprint(hosts, " nodes"), func(t *testing.T) {
			t.Parallel()
			var all []*job
			if hosts == 1 {
				all = []*job{start(t, nil, "-nproc", "4", "RANKS", "stuck", "sleeps")}
			} else {
				all = nodes(t, "127.0.0.1:0", 2, "-nproc", "2", "RANKS", "stuck", "sleeps")
			}
			pids := all[0].numbers("settled", 4/hosts)
			if hosts == 2 {
				all[1].numbers("settled", 2)
			}
			if err := unix.Kill(pids[1], unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			line := fmt.Sprintf("rank 1 (%s, pid %d): stopped by a signal during load, step 3: rank 0 and 2 more wait for it during all-reduce bucket 0, seq 7, step 3", host, pids[1])
			for i, j := range all {
				code, out := j.end()
				if took := time.Since(began); code != 1 || took > endsWithin {
					t.Errorf("exit code %d after %v", code, took)
				}
				each(t, out, [][]int{{0}, {2, 3}}[i], line)
				want(t, out, "ddplaunch: "+line+"\n")
			}
			t.Logf("ended after %v", time.Since(began))
			gone(t, pids[0], pids[1])
		})
	}
}

// SIGUSR2, to a rank or its launcher, shows who lags, and kills nobody.
func TestFlight(t *testing.T) {
	dir := t.TempDir()
	j := start(t, nil, "-nproc", "2", "--log-dir", dir, "RANKS", "stuck", "sleeps")
	pids := j.numbers("settled", 2)
	for _, pid := range []int{pids[0], j.cmd.Process.Pid} {
		before := len(j.output())
		if err := unix.Kill(pid, unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		table := regexp.MustCompile(`ddplaunch: flight: 0 +7 +all-reduce bucket 0 +mean f32\[10\] +waits for [^ ]+; step 3
ddplaunch: flight: 1 +6 +barrier +- +done [^ ]+ ago; load, step 3  <-- 1 behind, 1 rank waits
`)
		for deadline := time.Now().Add(patience); !table.MatchString(j.output()[before:]); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in\n%s", table, j.output()[before:])
			}
		}
	}
	if err := j.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(j.output(), "asked to stop") && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if err := unix.Kill(pids[1], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, out := j.end()
	if code != 137 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	// At the end it is shown without a question, with what the dead one did.
	want(t, out, "; load, step 3; killed by SIGKILL  <-- 1 behind, 1 rank waits\n")
	report, err := os.ReadFile(dir + "/flight.txt")
	if err != nil || strings.Count(string(report), "== ") != 3 || !strings.Contains(string(report), fmt.Sprintf("-- rank 1 (%s, pid %d): 7 begun, 7 ended\n", host(t), pids[1])) {
		t.Errorf("the file of flights: %v\n%s", err, report)
	}
}

// Of several nodes each knows its ranks: node 0 shows all, and so does whichever
// was asked.
func TestFlightOfSeveralNodes(t *testing.T) {
	t.Parallel()
	all := nodes(t, "127.0.0.1:0", 2, "-nproc", "2", "RANKS", "stuck", "sleeps")
	for _, j := range all {
		j.numbers("settled", 2)
	}
	table := regexp.MustCompile(`ddplaunch: flight: 0,2-3 +7 +all-reduce bucket 0 .*
ddplaunch: flight: 1 +6 +barrier .*  <-- 1 behind, 3 ranks wait
`)
	shown := func() bool { return table.MatchString(all[0].output()) && table.MatchString(all[1].output()) }
	for deadline := time.Now().Add(patience); !shown(); { // a node that stands still is left out
		if time.Now().After(deadline) {
			t.Fatalf("no %q in both of\n%s\n%s", table, all[0].output(), all[1].output())
		}
		if err := all[1].cmd.Process.Signal(unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		for asked := time.Now(); !shown() && time.Since(asked) < time.Second; {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// One that does nothing is waited for as long as was said; one that computes is
// waited for, and others hear of it; with 0 nobody asks.
func TestStuckRank(t *testing.T) {
	for name, tt := range map[string]struct {
		after string
		code  int
		says  string
	}{
		"sleeps":   {"2s", 1, `\): no progress for \d+s during load, step 3: rank 0 waits for it during all-reduce bucket 0, seq 7, step 3\n`},
		"computes": {"3s", 0, `\): no progress for \d+s during load, step 3, but it computes: rank 0 waits for it during all-reduce bucket 0, seq 7, step 3\n`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := t.TempDir() + "/heard"
			j := start(t, nil, "--stuck-after", tt.after, "-nproc", "2", "RANKS", "stuck", name, heard)
			says := regexp.MustCompile(tt.says) // a launcher that stood still says more seconds
			for deadline := time.Now().Add(patience); !says.MatchString(j.output()); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("no %q in\n%s", says, j.output())
				}
			}
			if err := os.WriteFile(heard, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if code, out := j.end(); code != tt.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tt.code, out)
			}
		})
	}
	t.Run("a debugger", func(t *testing.T) {
		t.Parallel()
		j := start(t, nil, "--stuck-after", "0", "-nproc", "2", "RANKS", "stuck", "sleeps")
		pids := j.numbers("settled", 2)
		if err := unix.Kill(pids[1], unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-j.done:
			t.Errorf("it has ended:\n%s", j.output())
		case <-time.After(3 * time.Second):
		}
		if err := unix.Kill(pids[1], unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code, _ := j.end(); code != 137 {
			t.Errorf("exit code %d, want 137", code)
		}
	})
}
