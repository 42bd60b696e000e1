package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective/cost"
)

// patience bounds every program of these tests: more is a hang.
const patience = time.Minute

var bin string // folder of the programs, made by build

// build builds collbench and ddplaunch, once.
var build = sync.OnceValue(func() error {
	var err error
	if bin, err = os.MkdirTemp("", "collbench-test-"); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", bin+"/", "ebtrain/collective/collbench", "ebtrain/launch/ddplaunch").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin != "" {
		if err := os.RemoveAll(bin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// needPrograms builds the programs, and skips a test under -short.
func needPrograms(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts programs; left out under -short")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
}

// start runs one of the programs in dir and is its exit code and its two outputs. However it
// ends, it leaves no temporary file.
func start(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	needPrograms(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, args[0]), args[1:]...)
	var out, errs bytes.Buffer
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &errs, 5*time.Second
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
		t.Fatalf("%s: %v, %v\n%s%s", strings.Join(args, " "), err, ctx.Err(), &out, &errs)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%s leaves %v, %v", strings.Join(args, " "), left, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestLaunched measures the ranks of ddplaunch, in shared memory and over TCP, and
// ranks of collbench's own: rank 0 alone prints, and writes the report.
func TestLaunched(t *testing.T) {
	for _, test := range []struct {
		name, args, head, prefix string
		ranks                    string
		floor, stream            bool
	}{
		{"shared memory", "ddplaunch -nproc 2 collbench --max 16KB", "# all-reduce sum f32, 2 ranks on 1 host; memory alloc\n", "[0] ", "[2]", true, false},
		{"tcp", "ddplaunch -nproc 3 collbench --max 16K --network tcp", "# all-reduce sum f32, 3 ranks on 3 hosts, TCP; memory alloc\n", "[0] ", "[1 1 1]", false, true},
		{"alone", "collbench -nproc 2 --max 16K --memory ordinary", "# all-reduce sum f32, 2 ranks on 1 host; memory ordinary\n", "", "[2]", true, false},
		{"pretended hosts", "collbench -nproc 4 --hosts 2 --max 16K", "# all-reduce sum f32, 4 ranks on 2 hosts, TCP; memory alloc\n", "", "[2 2]", true, true},
		{"alone, tcp", "collbench -nproc 2 --network tcp --max 16K --collective broadcast", "# broadcast sum f32, 2 ranks on 2 hosts, TCP; memory alloc\n", "", "[1 1]", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			args := append(strings.Fields(test.args), "--max-time", "20ms", "--iters", "50", "--json", "report.json")
			code, out, errs := start(t, dir, args...)
			if code != 0 || errs != "" {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			for line := range strings.Lines(out) {
				if !strings.HasPrefix(line, test.prefix) || len(strings.TrimPrefix(line, test.prefix)) > 81 {
					t.Errorf("not a line of rank 0, or a long one: %s", line)
				}
			}
			if !strings.HasPrefix(out, test.prefix+test.head) || !strings.Contains(out, "# time = latency + bytes/bandwidth") {
				t.Errorf("printed\n%s", out)
			}
			r, err := cost.Read(filepath.Join(dir, "report.json"))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Sizes) < 9 || fmt.Sprint(r.Ranks) != test.ranks || r.Fit == nil || (r.FloorFit != nil) != test.floor || (r.StreamFit != nil) != test.stream {
				t.Errorf("the report is %+v", r)
			}
			for _, s := range r.Sizes {
				if s.Wrong != 0 || s.Median <= 0 || (s.Floor != nil) != test.floor || (s.Stream != nil) != test.stream || (s.StreamShare > 0) != test.stream {
					t.Errorf("size %+v", s)
				}
				times := 1.0 // that the bytes go over a link, of a broadcast or an all-reduce
				if hosts := float64(len(r.Ranks)); r.Collective == "all-reduce" {
					times = 2 * (hosts - 1) / hosts
				}
				if test.stream && !(math.Abs(s.StreamShare/(s.Stream.Median*times/s.Median)-1) <= 1e-9) {
					t.Errorf("the share of a stream, of size %+v", s)
				}
			}
		})
	}
}

// TestMistakes wants one sentence, once, behind the program's name, once, and the exit code
// of a mistake.
func TestMistakes(t *testing.T) {
	needPrograms(t)
	for args, want := range map[string]string{
		"ddplaunch -nproc 1 collbench":                 "one rank has nobody to exchange anything with: start two or more, as with ddplaunch -nproc 2 collbench",
		"ddplaunch -nproc 2 collbench --max lots":      `--max: "lots" is not a size, expected bytes from 1 to 16G, such as 256K or 64MB`,
		"ddplaunch -nproc 2 collbench -nproc 4":        "--nproc 4, but this process is one of 2 ranks: leave --nproc to the launcher",
		"ddplaunch -nproc 2 collbench --hosts 2":       "--hosts pretends hosts for ranks that collbench starts; those of a launcher are where they are (--network tcp makes each a host)",
		"ddplaunch -nproc 2 collbench --peers bin":     "--peers compares ranks that collbench and the other libraries start themselves: leave out the launcher",
		"collbench --peers /nowhere":                   "--peers /nowhere: stat /nowhere/mpi: no such file or directory: make -C collective/collbench/peers deps all builds them",
		"ddplaunch -nproc 2 sh -c EACH":                "--max is 8 on rank 0 and 9 on rank 1: give the same settings to all ranks",
		"collbench -nproc 1":                           "--nproc is 1, expected at least 2: one rank has nobody to exchange anything with",
		"collbench --max 8 --json /nowhere/report":     "--json /nowhere/report: there is no folder /nowhere: make it first",
		"ddplaunch -nproc 2 collbench --max 8 --jason": "unknown flag --jason: did you mean --json? (see collbench --help)",
	} {
		fields := strings.Fields(args)
		if last := len(fields) - 1; fields[last] == "EACH" {
			fields[last] = "exec " + filepath.Join(bin, "collbench") + " --max $((8 + RANK))"
		}
		code, out, errs := start(t, t.TempDir(), fields...)
		wantCode := 2
		if strings.Contains(args, "--json") {
			wantCode = 1
		}
		if strings.HasPrefix(args, "collbench") && strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: more than one line:\n%s", args, errs)
		}
		if code != wantCode || strings.Count(out+errs, "collbench: "+want) != 1 || strings.Contains(out+errs, "collbench: collbench: ") {
			t.Errorf("%s: exit %d, want %d and once %q:\n%s%s", args, code, wantCode, want, out, errs)
		}
	}
}
