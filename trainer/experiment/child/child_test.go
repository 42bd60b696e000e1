package child

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sh runs a script with sh and returns how it ended and what it printed.
func sh(t *testing.T, ctx context.Context, script string, c Command) (Ended, string, string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Path, c.Args, c.Env, c.Log = "/bin/sh", []string{"-c", script}, os.Environ(), log
	if c.Stdout == nil {
		c.Stdout = &out
	}
	e, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return e, out.String(), log.Name()
}

func TestEnds(t *testing.T) {
	e, out, log := sh(t, t.Context(), `echo one; echo two >&2; echo three >&2; exit 3`, Command{})
	if e.Code != 3 || e.String() != "exit 3" || out != "one\n" || e.Wall <= 0 {
		t.Errorf("%v, %+v, %q", e, e, out)
	}
	if line, err := LastLine(log, 0); line != "three" || err != nil {
		t.Errorf("last line %q, %v", line, err)
	}
	e, _, _ = sh(t, t.Context(), `kill -9 $$`, Command{})
	if e.Code != 137 || e.String() != "killed by SIGKILL" {
		t.Errorf("killed: %v, %+v", e, e)
	}
	if _, err := Run(t.Context(), Command{Path: "/nowhere/program"}); err == nil {
		t.Error("a program that is not there ran")
	}
}

// TestCPU: what a child costs is counted, waiting is not.
func TestCPU(t *testing.T) {
	busy, _, _ := sh(t, t.Context(), `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`, Command{})
	idle, _, _ := sh(t, t.Context(), `sleep 0.3`, Command{})
	if busy.CPU <= 0 || idle.CPU >= idle.Wall || idle.Wall < 300*time.Millisecond {
		t.Errorf("busy %+v, idle %+v", busy, idle)
	}
}

// TestNice: the child is nicer, this process is not.
func TestNice(t *testing.T) {
	own := func() string {
		_, out, _ := sh(t, t.Context(), `nice`, Command{})
		return strings.TrimSpace(out)
	}
	before := own()
	_, out, _ := sh(t, t.Context(), `nice`, Command{Nice: 5})
	base, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out); got != strconv.Itoa(min(base+5, most)) {
		t.Errorf("niceness %s, before it %s", got, before)
	}
	for range 20 { // threads that started nice children are not used again
		if got := own(); got != before {
			t.Fatalf("niceness of an ordinary child afterwards: %s, want %s", got, before)
		}
	}
}

// TestNiceSession: where the kernel shares processors out among sessions, that of the
// child is as nice as the child.
func TestNiceSession(t *testing.T) {
	if _, err := os.Stat("/proc/self/autogroup"); err != nil {
		t.Skipf("this kernel has no autogrouping: %v", err)
	}
	own, err := os.ReadFile("/proc/self/autogroup")
	if err != nil {
		t.Fatal(err)
	}
	nice := func(autogroup string) string { return autogroup[strings.LastIndex(autogroup, " ")+1:] }
	e, out, log := sh(t, t.Context(), `for i in $(seq 100); do case $(cat /proc/self/autogroup) in *" 19") exit 0;; esac; sleep 0.05; done; cat /proc/self/autogroup; exit 1`, Command{Nice: 19})
	if line, err := LastLine(log, 0); e.Code != 0 || line != "" || err != nil {
		t.Errorf("%v, the child's session: %q; %q, %v", e, out, line, err)
	}
	if after, err := os.ReadFile("/proc/self/autogroup"); err != nil || nice(string(after)) != nice(string(own)) {
		t.Errorf("this session was %q and is %q, %v", own, after, err)
	}
}

// TestStop: the end of the context is SIGINT, which the child may answer as it
// likes; closing Kill is the end.
func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e, _, _ := sh(t, ctx, `trap 'exit 75' INT; echo ready; while :; do sleep 0.01; done`, Command{Stdout: onOutput(cancel)})
	if e.Code != 75 {
		t.Errorf("a child that handles SIGINT: %v", e)
	}
	kill := make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	ready := func() {
		cancel()
		time.AfterFunc(50*time.Millisecond, func() { close(kill) })
	}
	e, _, _ = sh(t, ctx, `trap '' INT; echo ready; while :; do sleep 0.01; done`, Command{Stdout: onOutput(ready), Kill: kill})
	if e.Code != 128+int(syscall.SIGKILL) {
		t.Errorf("a child that does not stop: %v", e)
	}
}

// onOutput is called when a child prints something.
type onOutput func()

func (f onOutput) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

func TestLastLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte("first\nstep 1\rstep 2\r\nlast one \n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[int64]string{0: "last one", 6: "last one", 29: "", 99: ""} {
		if got, err := LastLine(file, from); got != want || err != nil {
			t.Errorf("from %d: %q, %v; want %q", from, got, err, want)
		}
	}
}
