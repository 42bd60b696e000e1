package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/env"
)

func TestOutput(t *testing.T) {
	const script = `i=0; while [ $i -lt 200 ]; do echo "rank $RANK line $i of a long line that must stay whole"; i=$((i+1)); done; printf 'no newline'; echo oops >&2`
	dir := t.TempDir()
	code, out := run1(t, "-nproc", "3", "--log-dir", dir+"/logs", "sh", "-c", script)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	next := map[string]int{}
	for line := range strings.Lines(out) {
		var p, r, i int
		if n, _ := fmt.Sscanf(line, "[%d] rank %d line %d of a long line that must stay whole\n", &p, &r, &i); n == 3 {
			if p != r || next[fmt.Sprint(r)] != i {
				t.Fatalf("line out of place: %q", line)
			}
			next[fmt.Sprint(r)]++
		} else if !strings.HasSuffix(line, "] no newline\n") && !strings.HasSuffix(line, "] oops\n") {
			t.Errorf("strange line %q", line)
		}
	}
	if next["0"] != 200 || next["1"] != 200 || next["2"] != 200 {
		t.Errorf("lines by rank: %v", next)
	}
	each(t, out, []int{0, 1, 2}, "no newline")
	for r := range 3 {
		b, err := os.ReadFile(fmt.Sprintf("%s/logs/rank-%d.out", dir, r))
		if err != nil || strings.Count(string(b), fmt.Sprintf("rank %d line", r)) != 200 || !strings.Contains(string(b), "oops\n") {
			t.Errorf("log of rank %d: %d bytes, %v", r, len(b), err)
		}
	}
}

func TestRedirectAndFilter(t *testing.T) {
	dir := t.TempDir()
	code, out := run1(t, "-nproc", "2", "-log_dir", dir, "-r", "1:1", "-t", "0:2", "sh", "-c", "echo out$RANK; echo err$RANK >&2")
	if code != 0 || strings.Contains(out, "out1") {
		t.Errorf("exit code %d, output %s", code, out)
	}
	want(t, out, "[0] out0\n", "[0] err0\n", "[1] err1\n")
	for r, content := range []string{"err0\n", "out1\n"} {
		if b, err := os.ReadFile(fmt.Sprintf("%s/rank-%d.out", dir, r)); string(b) != content {
			t.Errorf("log of rank %d: %q, %v", r, b, err)
		}
	}
	if code, out := run1(t, "-nproc", "3", "--local-ranks-filter=1", "sh", "-c", "echo out$RANK"); code != 0 || out != "[1] out1\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

func TestEnvironment(t *testing.T) {
	code, out := run1(t, "-nproc", "2", "--rdzv-id", "exp", "sh", "-c",
		`echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $EBTRAIN_PROGRESS; [ -n "$OMP_NUM_THREADS" ] && [ "$MASTER_PORT" -gt 0 ] && echo set; [ -z "$EBTRAIN_KEY" ] && echo no key`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "[0] 0 2 0 2 0 127.0.0.1 exp 0 0 plain\n", "[1] 1 2 1 2 0 127.0.0.1 exp 0 0 plain\n")
	each(t, out, []int{0, 1}, "set")
	each(t, out, []int{0, 1}, "no key")
}

// Ranks that are bound run on processors of their own, of which each has as many threads
// as it has, also when they are started again; the launcher is bound to nothing.
func TestBinding(t *testing.T) {
	if code, out := run1(t, "-nproc", "1", "--numa-binding", "half", "true"); code != 2 || !strings.Contains(out, `--numa-binding "half": want one of none, node, socket, exclusive`) {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if runtime.NumCPU() < 2 {
		t.Skip("there is one processor, and two are needed to tell ranks apart: only the mistake was tried")
	}
	code, out := run1(t, "-nproc", "2", "--numa-binding", "exclusive", "--max-restarts", "1", "sh", "-c",
		`echo on $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status) of $(nproc) threads $OMP_NUM_THREADS; grep Cpus_allowed_list /proc/$PPID/status
		[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || { touch "$0/$RANK"; until [ -e "$0/0" ] && [ -e "$0/1" ]; do sleep 0.01; done; exit 1; }`, t.TempDir()) // neither fails before both have said it
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	on := map[string][]string{} // what each rank said
	all := map[string]bool{}    // what the launcher may use
	for line := range strings.Lines(out) {
		if at, text, ok := strings.Cut(strings.TrimSpace(line), " on "); ok {
			on[at] = append(on[at], text)
		}
		if _, list, ok := strings.Cut(line, "Cpus_allowed_list:"); ok {
			all[list] = true
		}
	}
	a, b := on["[0]"], on["[1]"]
	if len(a) != 2 || len(b) != 2 || a[0] != a[1] || b[0] != b[1] || a[0] == b[0] || len(all) != 1 {
		t.Errorf("in two epochs ranks were on %q and %q; output\n%s", a, b, out)
	}
	for _, texts := range on {
		var list string
		var processors, threads int
		if n, err := fmt.Sscanf(texts[0], "%s of %d threads %d", &list, &processors, &threads); n != 3 || err != nil || processors != threads || processors > runtime.NumCPU()-1 {
			t.Errorf("got %q, want as many threads as processors, and not all of %d: %v", texts[0], runtime.NumCPU(), err)
		}
	}
}

// What follows the program's name is the program's.
func TestProgramArguments(t *testing.T) {
	code, out := run1(t, "-nproc", "1", "echo", "-nproc", "2", "--help", "-v", "--", "x")
	if code != 0 || out != "[0] -nproc 2 --help -v -- x\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// When nobody reads the output any more, the job stops.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const flood = "trap 'exit 75' PIPE; while :; do echo x; sleep 0.01; done"
	cmd := exec.Command("sh", "-c", self+` -nproc 2 sh -c "$0" | head -1`, flood)
	cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
	done := make(chan error, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), "] x\n") {
			err = fmt.Errorf("%w: output %q", err, out)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Error("the job went on")
	}
}
