package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSupervise: checks that crash, hang and fail are noted with what was put out, the
// next ones are done by another process, and nothing of the one before is left.
func TestSupervise(t *testing.T) {
	dir := t.TempDir()
	said := func(kind, name, more string) string {
		return fmt.Sprintf(`echo '{"%s":{"part":"b","name":"%s"%s}}' >&3; `, kind, name, more)
	}
	begins := "echo of the one before; echo '" + strings.TrimSpace(marker) + "'; "
	scripts := []string{
		said("began", "good", "") + said("ended", "good", `,"ok":true,"numbers":{"rate":2}`) +
			begins + said("began", "crashes", "") + "sleep 1000 & echo $! >" + dir + "/left; echo 'panic: of the test'; kill -SEGV $$",
		begins + said("began", "hangs", "") + "echo it is here; sleep 1000",
		begins + said("began", "fails", "") + "echo --- FAIL: of the test; " + said("ended", "fails", `,"text":"wrong"`),
		`echo '{"over":true}' >&3`,
	}
	var starts []int
	o := &options{out: dir, each: 3 * time.Second}
	var out bytes.Buffer
	r, err := newReport(dir, nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	err = supervise(t.Context(), o, r, func(from int) (*exec.Cmd, error) {
		starts = append(starts, from)
		return exec.Command("sh", "-c", scripts[len(starts)-1]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(starts) != "[0 2 3 4]" {
		t.Errorf("processes began at checks %v", starts)
	}
	if got := strings.Join(r.failed(), ", "); got != "b: crashes, b: hangs, b: fails" {
		t.Errorf("failed: %s", got)
	}
	for i, want := range []string{"", "signal: segmentation fault", "it took longer than --each 3s", "wrong"} {
		more := []string{"", "panic: of the test", "it is here", "--- FAIL: of the test"}[i]
		if c := r.Checks[i]; !strings.HasPrefix(c.Text, strings.TrimSpace(want)) && !strings.Contains(c.Text, want) || !strings.Contains(c.Text, more) || strings.Contains(c.Text, "the one before") {
			t.Errorf("%s: %q, want %q and %q in it", c.Name, c.Text, want, more)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	if err != nil || !bytes.Contains(log, []byte("it is here")) {
		t.Errorf("log: %v\n%s", err, log)
	}
	again := &report{}
	if err := again.read(dir); err != nil || len(again.Checks) != 4 || again.found("good", "rate") != 2 {
		t.Errorf("what was written: %v, %+v", err, again.Checks)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(n, 0) == nil && !zombie(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is left", n)
		}
	}
}

// zombie says whether a process is dead and nobody has asked how it ended.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

// TestSuperviseLimit: the limit of all checks cuts off the one under way.
func TestSuperviseLimit(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir, nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for limit := time.Second; err == nil && len(r.Checks) == 0 && limit < time.Minute; limit *= 4 { // on a busy machine none may be under way
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = supervise(ctx, &options{out: dir, each: time.Minute}, r, func(int) (*exec.Cmd, error) {
			return exec.Command("sh", "-c", `echo '{"began":{"name":"long"}}' >&3; sleep 1000`), nil
		})
		cancel()
	}
	if err != nil || len(r.Checks) != 1 || !r.Checks[0].Skipped || !strings.Contains(r.Checks[0].Text, "cut off") {
		t.Errorf("%v, %+v", err, r.Checks)
	}
}

// TestSuperviseNothing: a process that ends before any check is an error, not started
// again and again.
func TestSuperviseNothing(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir, nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	err = supervise(t.Context(), &options{out: dir, each: time.Minute}, r, func(int) (*exec.Cmd, error) { return exec.Command("false"), nil })
	if err == nil || !strings.Contains(err.Error(), "log.txt") {
		t.Errorf("got %v", err)
	}
}

// TestFinite: a number that is none is told all the same.
func TestFinite(t *testing.T) {
	b, err := json.Marshal(finite(map[string]any{"a": math.NaN(), "b": math.Inf(1), "c": 1.5, "d": 2}))
	if got := string(b); err != nil || got != `{"a":"NaN","b":"+Inf","c":1.5,"d":2}` {
		t.Errorf("got %s, %v", got, err)
	}
}
