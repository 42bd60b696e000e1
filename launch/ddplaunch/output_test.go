package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
)

// onTerminal is what ddplaunch writes to a terminal.
func onTerminal(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs terminals: %v", err)
	}
	defer func() { _ = user.Close() }()
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(env.Without(os.Environ()), roleVar+"=launcher", "TERM=xterm", "NO_COLOR="), environ...)
	cmd.Stdout, cmd.Stderr = program, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	text, err := io.ReadAll(user)
	if err != nil && !errors.Is(err, unix.EIO) { // which is how a terminal ends
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// Each rank has its colour on a terminal, unless that is not wanted, and its bar, unless the
// terminal cannot draw.
func TestColors(t *testing.T) {
	script := []string{"-nproc", "2", "sh", "-c", "echo one of $RANK; echo both"}
	out := onTerminal(t, nil, script...)
	want(t, out, "\x1b[36m[0]\x1b[0m one of 0\n", "\x1b[32m[1]\x1b[0m one of 1\n", "both\n")
	for _, environ := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if out := onTerminal(t, []string{environ}, script...); strings.Contains(out, "\x1b[3") || !strings.Contains(out, "[0] one of 0\n") {
			t.Errorf("%s: %q", environ, out)
		}
	}
	drawn := []string{"sh", "-c", `printf 'step 1\rstep 2\r'; echo done; echo "$EBTRAIN_PROGRESS"`}
	if out := onTerminal(t, nil, drawn...); !strings.Contains(out, "step 2\x1b[K") || !strings.Contains(out, "tty\n") {
		t.Errorf("on a terminal: %q", out)
	}
	if out := onTerminal(t, []string{"TERM=dumb"}, drawn...); strings.ContainsAny(out, "\r\x1b") || !strings.Contains(out, "[0] plain\n") {
		t.Errorf("on a terminal that draws nothing: %q", out)
	}
	if _, out := run1(t, script...); strings.Contains(out, "\x1b") {
		t.Errorf("away from a terminal: %q", out)
	}
}

// The reason of a failure is kept as torchelastic keeps it: for who started the
// launcher, and of the rank that failed. What a rank says itself comes first.
func TestErrorFile(t *testing.T) {
	for _, tt := range []struct {
		script, message string
		code            int
	}{
		{`echo dying; [ $RANK = 0 ] || kill -SEGV $$; sleep 20`, "killed by SIGSEGV", -11},
		{`[ $RANK = 0 ] || exit 7; sleep 20`, "exit status 7", 7},
		{`[ $RANK = 0 ] || { echo '{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":"here","timestamp":"5"}}}' >$TORCHELASTIC_ERROR_FILE; exit 7; }; sleep 20`, "ValueError: no", 7},
	} {
		dir := t.TempDir()
		var own, rank struct {
			Message struct {
				Message   string
				ErrorCode int
				ExtraInfo map[string]string
			}
		}
		if code, out := start(t, []string{"TORCHELASTIC_ERROR_FILE=" + dir + "/mine.json"}, "-nproc", "2", "--log-dir", dir, "sh", "-c", tt.script).end(); code == 0 {
			t.Fatal(out)
		}
		for name, f := range map[string]any{"mine.json": &own, "rank-1.error.json": &rank} {
			b, err := os.ReadFile(dir + "/" + name)
			if err == nil {
				err = json.Unmarshal(b, f)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if m := own.Message; !strings.Contains(m.Message, tt.message) || m.ErrorCode != tt.code || m.ExtraInfo["timestamp"] == "" || m.ExtraInfo["py_callstack"] == "" {
			t.Errorf("%s: %+v", tt.script, m)
		}
		if rank.Message.Message != own.Message.Message {
			t.Errorf("the rank's file says %q, the launcher's %q", rank.Message.Message, own.Message.Message)
		}
		if _, err := os.Stat(dir + "/rank-0.error.json"); err == nil {
			t.Error("the other rank has an error file")
		}
	}
	// Nobody is told of a folder that there is not, nor overwrites the launcher's file.
	_, out := start(t, []string{"TORCHELASTIC_ERROR_FILE=/nowhere/mine.json"}, "sh", "-c", `echo "file ${TORCHELASTIC_ERROR_FILE-none}"`).end()
	want(t, out, "[0] file none\n")
}

// What is kept of a rank of another node is of this job, whether the launchers have a folder of
// their own, in which nobody else writes, or one, in which that rank does.
func TestErrorFileOfAnotherNode(t *testing.T) {
	const fails = `[ $RANK = 0 ] || { [ -z "$2" ] || echo "{\"message\":{\"message\":\"$2\"}}" >$TORCHELASTIC_ERROR_FILE; exit $1; }; sleep 20`
	for name, here := range map[string]string{"a folder for each": "0", "one folder": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, run := range []struct{ code, own, want string }{{"3", "ValueError: first", "exit status 3"}, {"7", "", "exit status 7"}, {"8", "ValueError: third", "exit status 8"}} {
				if here == "1" && run.own != "" {
					run.want = run.own
				}
				program := []string{"sh", "-c", fails, "sh", run.code, run.own}
				first := start(t, append(slices.Clone(secret), "TORCHELASTIC_ERROR_FILE="+dir+"/mine.json"),
					append([]string{"--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--log-dir", dir + "/1"}, program...)...)
				second := start(t, secret, append([]string{"--nnodes", "2", "--node-rank", "1", "--join", first.endpoint(), "--log-dir", dir + "/" + here}, program...)...)
				for i, j := range []*job{first, second} {
					if code, out := j.end(); fmt.Sprint(code) != run.code {
						t.Errorf("node %d ended with %d, want %s:\n%s", i, code, run.code, out)
					}
				}
				for _, file := range []string{"/mine.json", "/1/rank-1.error.json"} {
					if text, err := os.ReadFile(dir + file); err != nil || !strings.Contains(string(text), run.want) {
						t.Errorf("%s holds %s, want %q; error %v", file, text, run.want, err)
					}
				}
			}
		})
	}
}

// Node 0 shows the lines of all nodes, and joins equal ones that come at about the
// same time. How many do is the machine's: of lines that come for two seconds one does,
// whoever begins a second before the others.
func TestGatheredOutput(t *testing.T) {
	t.Parallel()
	all := nodes(t, "127.0.0.1:0", 3, "-nproc", "2", "--gather-output", "sh", "-c", "i=0; while [ $i -lt 40 ]; do echo equal; sleep 0.05; i=$((i+1)); done; echo one of $RANK; echo equal error >&2; echo last")
	var rest string // what node 0 was too late to take at the end
	for i, j := range all {
		code, out := j.end()
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		if i > 0 && strings.Count(out, "] equal\n") > 20 {
			t.Errorf("node %d: %s", i, out)
		}
		rest += out
	}
	out := all[0].output()
	each(t, out, []int{0, 1, 2, 3, 4, 5}, "equal")
	for r := range 6 {
		want(t, rest, fmt.Sprintf("[%d] one of %d\n", r, r))
	}
	if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		ranks, text, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
		nodes := 0
		for node := range 3 {
			if writtenBy(ranks, 2*node) || writtenBy(ranks, 2*node+1) {
				nodes++
			}
		}
		return ok && nodes > 1 && slices.Contains([]string{"equal", "equal error", "last"}, text)
	}) {
		t.Errorf("no line stands for ranks of several nodes:\n%s", out)
	}
}

// A failure of a node is told by node 0, once, and by the others if node 0 is gone.
func TestGatheredFailure(t *testing.T) {
	for name, lost := range map[string]int{"a rank": -1, "node 0": 0, "node 1": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for try := 1; ; try++ { // who stands still until node 0 has ended says it, too
				text := gatheredFailure(t, lost)
				if text == "" {
					return
				}
				if t.Log(text); try == 5 {
					t.Fatal("others say it, too, each time")
				}
			}
		})
	}
}

// gatheredFailure has a rank fail, or the launcher of a node, and is what others than node 0
// have said of it that were not to.
func gatheredFailure(t *testing.T, lost int) (text string) {
	t.Helper()
	all := nodes(t, "127.0.0.1:0", 3, "-nproc", "2", "--gather-output", "RANKS", "wait")
	pids := all[0].numbers("ready", 6)
	says := "ddplaunch: node " + fmt.Sprint(lost) + " ("
	victim := pids[3]
	if lost >= 0 {
		victim = all[lost].cmd.Process.Pid
	} else {
		says = fmt.Sprintf("pid %d): killed by SIGKILL", victim)
	}
	if err := unix.Kill(victim, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, j := range all {
		_, out := j.end()
		switch {
		case i == lost:
		case i == 0 || lost == 0:
			want(t, out, says)
		case strings.Contains(out, "ddplaunch: "):
			text += fmt.Sprintf("node %d says\n%s", i, out)
		}
	}
	return text
}

// Why the job ends is said, though the rank that failed has said why it did in an epoch
// before; and a rank that stops cleanly ends nothing: what others say after it is shown.
func TestSaidBefore(t *testing.T) {
	t.Parallel()
	code, out := run1(t, "-nproc", "2", "--max-restarts", "1", "sh", "-c", `[ $RANK = 1 ] || exec sleep 60; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || echo "sh: why" >&2; exit 3`)
	if n := strings.Count(out, "): exit status 3\n"); code != 3 || n != 2 { // the first before the restart
		t.Errorf("exit code %d, the cause is told %d times in\n%s", code, n, out)
	}
	_, out = run1(t, "-nproc", "2", "sh", "-c", `[ $RANK = 0 ] || sleep 1; echo warning >&2; exit 75`)
	want(t, out, "[0] warning\n", "[1] warning\n")
}

// Help that cannot be written is said to be lost, though it is queued like all output.
func TestHelpToFullDisk(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--help", "--version"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err) // every Linux has it
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var says strings.Builder
		cmd := exec.CommandContext(ctx, self, flag)
		cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
		cmd.Stdout, cmd.Stderr = full, &says
		_ = cmd.Run() // its exit status is looked at
		if code := cmd.ProcessState.ExitCode(); code != 1 || says.String() != "ddplaunch: write /dev/stdout: no space left on device\n" {
			t.Errorf("%s: exit code %d, want 1; it said\n%s", flag, code, &says)
		}
		_ = full.Close() // nothing is in it
	}
}

// Output that cannot be written ends the job, cleanly, and not as one that is to be tried
// again: the exit status and a sentence say why.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err) // every Linux has it
	}
	defer func() { _ = full.Close() }() // nothing is in it
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var says strings.Builder
	cmd := exec.CommandContext(ctx, self, "-nproc", "2", "sh", "-c", `trap "touch $0/clean$RANK; exit 75" TERM; touch "$0/$RANK"; until [ -e "$0/0" ] && [ -e "$0/1" ]; do sleep 0.01; done; while :; do echo x; sleep 0.01; done`, dir) // neither is asked before both catch it
	cmd.Env = append(env.Without(os.Environ()), roleVar+"=launcher")
	cmd.Stdout, cmd.Stderr = full, &says
	_ = cmd.Run() // its exit status is looked at
	if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Contains(says.String(), "SIGPIPE") {
		t.Errorf("exit code %d, want 1; it said\n%s", code, &says)
	}
	want(t, says.String(), "ddplaunch: write the ranks' output: write /dev/stdout: no space left on device\n")
	if clean, err := filepath.Glob(filepath.Join(dir, "clean*")); len(clean) != 2 {
		t.Errorf("ranks that ended cleanly: %q, %v", clean, err)
	}
}
