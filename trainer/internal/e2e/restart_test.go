package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestRestart kills a rank of a job that may start again: it goes on from its
// checkpoint by itself, with the losses of a run that was left alone. A run of
// another job is left alone also by a job that starts again.
func TestRestart(t *testing.T) {
	long(t)
	s := newSite(t)
	const steps = 200
	s.must(on(2, tiny("whole", "--steps", fmt.Sprint(steps)))...)
	args := tiny("a", "--steps", fmt.Sprint(steps), "--ckpt-every", "5")
	r := s.start(append([]string{"ddplaunch", "-nproc", "2", "--max-restarts", "1"}, args...)...)
	s.awaitStep(r, "a", 7)
	s.kill(r.ranks()[1])
	e := r.wait()
	if e.code != 0 || !strings.Contains(e.stderr, "restart 1: rank 1 (") {
		t.Fatalf("want a restart and a good end, %v", e)
	}
	if whole, again := s.losses("whole"), s.losses("a"); len(again) != steps || fmt.Sprint(whole) != fmt.Sprint(again) {
		t.Errorf("losses of the undisturbed run\n%v\nand of the other\n%v", whole, again)
	}
	s.sameFiles("whole/ckpt/step-00000200", "a/ckpt/step-00000200")
	before := s.content("whole")
	e = s.run(append([]string{"ddplaunch", "-nproc", "2", "--max-restarts", "1"}, tiny("whole", "--steps", "300")...)...)
	if e.code != 1 || !strings.Contains(e.stderr, "whole holds another run") {
		t.Errorf("want a refusal, %v", e)
	}
	for name, text := range s.content("whole") {
		if !strings.Contains(name, "rank-") && string(before[name]) != string(text) {
			t.Errorf("%s of another run was changed", name)
		}
	}
}

// TestLogsInTheRun has the launcher write into the run's folder: its files and the
// ranks' are apart.
func TestLogsInTheRun(t *testing.T) {
	long(t)
	s := newSite(t)
	s.must(append([]string{"ddplaunch", "-nproc", "2", "--log-dir", "a"}, tiny("a", "--steps", "3")...)...)
	s.checkLogs("a", 2)
	files := s.content("a")
	if text := string(files["rank-0.out"]); !strings.Contains(text, "3 steps done; checkpoint ") || strings.Contains(text, `"rank":`) {
		t.Errorf("rank-0.out: %q", text)
	}
	if strings.Contains(string(files["rank-0.log"]), "3 steps done; checkpoint ") {
		t.Errorf("rank-0.log: %q", files["rank-0.log"])
	}
}
