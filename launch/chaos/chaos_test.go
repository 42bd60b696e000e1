package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/forecast"
	"ebtrain/launch/netns"
)

func TestReport(t *testing.T) {
	r := &report{o: options{hosts: 4, nproc: 2}, begun: time.Unix(0, 0).UTC(), load: "1.00"}
	kill := trial{name: "kill", what: "kill -9 of a rank"}
	for _, ms := range []int{40, 20, 60} {
		k := &result{exits: []int{137, 137}}
		k.measure("all ranks gone", time.Duration(ms)*time.Millisecond, 50*time.Millisecond)
		k.measure("launchers ended", time.Second, 0)
		r.add(kill, k)
	}
	r.add(trial{name: "late", what: "one is late"}, &result{exits: []int{75, 1}, wrong: []string{"exit code 1 of node2, want 75"}, left: []string{"file x"}})
	for _, want := range []string{
		"| kill: kill -9 of a rank | all ranks gone | 3 | 0.040 | 0.060 | 0.05 | 1 | 137 | 3 of 3 | 0 |\n",
		"|  | launchers ended | 3 | 1.000 | 1.000 |  |  |  |  |  |\n",
		"| late: one is late |  | 1 |  |  |  |  | 1 75 | 0 of 1 | 1 |\n",
		"- late, time 1: exit code 1 of node2, want 75\n- late, time 1: file x\n",
	} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("want %q in\n%s", want, r)
		}
	}
	if bad := fmt.Sprint(r.bad()); bad != "[late]" {
		t.Errorf("bad: %s", bad)
	}
}

// Who is blamed is found in what launchers and ranks say, and nothing else is.
func TestVerdicts(t *testing.T) {
	var got []string
	for _, m := range verdicts.FindAllStringSubmatch(`ddplaunch: waiting for 3 more nodes; on each of them: ddplaunch --nnodes 4 ...
ddplaunch: flight: ranks  seq  collective
[0,2-3] train: node 2 (node2): lost with ranks 4-5
[1] step 3/9
ddplaunch: warning: rank 1 (node0, pid 7): no progress for 30s
ddplaunch: epoch 1: node 2 (node2): lost with ranks 4-5
ddplaunch: rank 5 (node02, pid 9): killed by SIGKILL`, -1) {
		got = append(got, m[1])
	}
	if want := "[node 2 (node2): lost with ranks 4-5 rank 5 (node02, pid 9): killed by SIGKILL]"; fmt.Sprint(got) != want {
		t.Errorf("got %q", got)
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, says string }{
		{"--only kill,no", "--only no: there is no such trial"},
		{"--hosts 2", "want at least one time, and 3 to 9 hosts"},
		{"--hosts 5", "whose ranks share a batch of 24 equally"},
		{"--crowd 16,2", "--crowd 2: want 3 to 1024 launchers"},
		{"--short --times 3", "--times 3 is of no use to --short"},
		{"--short --hosts 4", "--hosts 4 is of no use to --short"},
		{"--only kill --crowd 5", "--crowd is for the trial crowd, which is not done"},
		{"--only kill --forecast", "--forecast is for the trial crowd, which is not done"},
		{"--short --forecast", "--forecast is for the trial crowd"},
		{"x", "x"},
	} {
		if _, err := parse(strings.Fields(tt.args), os.Stdout); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.args, err)
		}
	}
}

// A report that cannot be written is found out before the trials, not after them.
func TestReportIsCheckedFirst(t *testing.T) {
	t.Setenv("PATH", "") // nothing is started
	file := filepath.Join(t.TempDir(), "none", "x.md")
	err := run(t.Context(), []string{"--only", "kill", "--report", file}, io.Discard, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "--report: open "+file+": no such file or directory: give another file") {
		t.Error(err)
	}
}

// TestForetell has launchers of which each takes 10 ms and 1 ms for each other one, and
// a coordinator of 2 ms more for each: that is what is found, and forecast.
func TestForetell(t *testing.T) {
	const ms = time.Millisecond
	seen := map[int]crowdSeen{}
	for _, n := range []int{8, 32, 64} {
		others := time.Duration(n - 1)
		seen[n] = crowdSeen{launchers: n, start: 10*ms + others*ms, coord: 10*ms + 3*others*ms, end: 5 * ms, share: 1}
	}
	c := launcherCosts(forecast.Costs{}, seen[8], seen[32])
	if want := (forecast.Costs{Start: 10 * ms, Peer: ms, Join: 2 * ms, End: 5 * ms}); c != want {
		t.Errorf("fitted %+v, want %+v", c, want)
	}
	messages := forecast.Costs{Message: 20 * time.Microsecond, Encode: 5, Decode: 15, Carry: 5, Latency: 30 * time.Microsecond}
	text, err := foretell(messages, 2, seen, []int{64}, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n| 8 | 1.00 | 0.", "\n| 32 | 1.00 | 0.", "\n| 64 | 1.00 | 2.", "\n| 16 | "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	t.Log(text)
}

// The bar of crowds is for up to 128 launchers: of more, times are told and not judged.
func TestCrowdBar(t *testing.T) {
	for n, want := range map[int]time.Duration{3: 2 * time.Second, 128: 2 * time.Second, 129: 0, 1024: 0} {
		if got := crowdBar(n); got != want {
			t.Errorf("%d launchers: %v, want %v", n, got, want)
		}
	}
}

// What a message costs is measured: something, at each end and for each byte.
func TestMessageCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 20 MB and more; left out under -short")
	}
	c, err := messageCosts()
	if err != nil {
		t.Fatal(err)
	}
	if c.Message <= 0 || c.Encode <= 0 || c.Decode <= 0 {
		t.Errorf("of no cost: %+v", c)
	}
}

// TestShort is chaos --short: what happens to jobs ends them as it must. Times are
// not judged.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real jobs; left out under -short")
	}
	if err := netns.Possible(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-tags", buildTags(), "-o", dir+"/", "ebtrain/launch/chaos", "ebtrain/launch/ddplaunch", "ebtrain/trainer/train")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, dir+"/chaos", "--short")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it has started
	cmd.WaitDelay = time.Minute
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", time.Since(begun), out)
	if err != nil {
		t.Error(err)
	}
}

// buildTags are the tags that this test was built with.
func buildTags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				return s.Value
			}
		}
	}
	return ""
}
