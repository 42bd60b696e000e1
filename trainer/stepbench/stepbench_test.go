package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/world"
)

// runs runs stepbench as a single process.
func runs(t *testing.T, args string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(t.Context(), strings.Fields(args), nil, &out, &errs)
	return out.String(), err
}

const small = " --threads 1 --steps 1 --warmup 1 --max-s 0.01"

// Every network runs, and its lines hold the peers' fields, sensibly.
func TestNets(t *testing.T) {
	for _, tt := range []struct{ args, bench, loss string }{
		{"--net conv32 --width 4 --latent 3 --batch 2", "bidvl_step", "upper"},
		{"--net conv32 --width 4 --latent 3 --batch 2 --fresh-latent", "bidvl_step", "lower"},
		{"--net lebm-pictures --width 1 --latent 2 --batch 2", "lebm_pictures_step", "recon"},
		{"--net vages-mnist --width 1 --latent 2 --batch 2", "vages_mnist_step", "lower"},
		{"--net lebm-text --width 2 --latent 2 --batch 2", "lebm_text_step", "recon"},
		{"--net grbm-bidsm --latent 4 --batch 2", "grbm_bidsm_step", "upper"},
		{"--net conv-sm --width 1 --batch 2", "conv_sm_step", "loss"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			out, err := runs(t, tt.args+small+" --peak-size 0 --json --profile-ops")
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != 2 {
				t.Fatalf("%d lines, want the step and its ops:\n%s", len(lines), out)
			}
			var step map[string]any
			var ops profile
			if err := errors.Join(json.Unmarshal([]byte(lines[0]), &step), json.Unmarshal([]byte(lines[1]), &ops)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"step_ms", "min_ms", "max_ms", "img_s", "img_s_best", "gflops", "gflop_per_img", "planned_mb", "params_m", "n_iters"} {
				if v, ok := step[name].(float64); !ok || !(v > 0) && name != "params_m" {
					t.Errorf("%s is %v, want a number above 0", name, step[name])
				}
			}
			if step["bench"] != tt.bench || step["world"] != 1.0 || step["batch"] != 2.0 || step["finite"] != true {
				t.Errorf("bench, world, batch, finite: %v, %v, %v, %v", step["bench"], step["world"], step["batch"], step["finite"])
			}
			if n := step["allocs_step"].([]any)[0].(float64); n >= 1 {
				t.Errorf("%v objects are allocated in a step, want none", n)
			}
			if v, ok := step["line_ns"].([]any); step["line_ns"] != nil && (!ok || len(v) != 2 || !(v[0].(float64) > 0) || v[1].(float64) < v[0].(float64)) {
				t.Errorf("line_ns is %v, want the nearest and the farthest", step["line_ns"])
			}
			if v, ok := step["rss_growth_mb"].([]any); !ok || len(v) != 1 {
				t.Errorf("rss_growth_mb is %v, want a number for the rank", step["rss_growth_mb"])
			}
			// images/s, milliseconds and GFLOP/s are three views of one number.
			ms, rate := step["step_ms"].(float64), step["img_s"].(float64)
			if got := rate * ms / 1e3; !(math.Abs(got-2) <= 0.02) {
				t.Errorf("%v images/s at %v ms/step are %v images a step, want 2", rate, ms, got)
			}
			if got, want := step["gflops"].(float64), rate*step["gflop_per_img"].(float64); !(math.Abs(got-want) <= 0.02+0.05*want) {
				t.Errorf("%v GFLOP/s, want images/s times GFLOP per image, %v", got, want)
			}
			if _, ok := step["losses"].(map[string]any)[tt.loss]; !ok {
				t.Errorf("losses %v have no %s", step["losses"], tt.loss)
			}
			if ops.Bench != strings.TrimSuffix(tt.bench, "_step")+"_profile" || !(ops.MSPerStep > 0) || len(ops.Ops) < 3 {
				t.Errorf("profile %+v", ops)
			}
		})
	}
}

// The table has a row for everything that was asked for.
func TestTable(t *testing.T) {
	out, err := runs(t, "--net conv-sm --width 1 --batch 2 --peak-size 64 --profile-ops"+small)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"processors  ", "images/s", "ms/step", "GFLOP/s", "of the peak", "memory", "objects in a step; resident size grew by", "waiting for ranks", "losses", "conv2d_grad_w", "of them quiet"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table does not have %q:\n%s", want, out)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--precision fp8", `unknown --precision "fp8"`},
		{"--net vgg", `unknown --net "vgg": want one of conv-sm`},
		{"--net conv-sm --latent 4", "--latent is not a size of --net conv-sm"},
		{"--net grbm-bidsm --width 4", "--width is not a size"},
		{"--net grbm-bidsm --fresh-latent", "--fresh-latent is not a switch"},
		{"--width 6", "multiple of 4"},
		{"--steps 0", "--steps of at least 1"},
		{"--warmup 0", "--warmup of at least 1"},
		{"--batch -1", "--batch of at least 1"},
		{"--max-s 0", "--max-s above 0"},
		{"-nproc 2 --batch 3", "want a multiple of 2"},
		{"--device gpu", `unknown --device "gpu"`},
		{"more", "unexpected argument"},
	} {
		_, err := runs(t, tt.args)
		if _, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want a usage error with %q", tt.args, err, tt.want)
		}
	}
	if out, err := runs(t, "--help"); !errors.Is(err, cliflag.ErrHelp) || !strings.Contains(out, "--profile-ops") {
		t.Errorf("--help: %v\n%s", err, out)
	}
}

// built is this program, with the launcher beside it.
func built(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds two programs")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "ebtrain/launch/ddplaunch", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "stepbench")
}

// A terminal's Ctrl-C is a signal to all processes in its foreground, and ends two ranks
// as it ends one: they have the time that the launcher gives them.
func TestCtrlC(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), built(t), strings.Fields("-nproc 2 --net conv32 --width 4 --batch 4 --steps 1000000 --max-s 600")...)
	var said bytes.Buffer
	cmd.Stderr, cmd.SysProcAttr = &said, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// With a rank, its launcher hears signals.
	for deadline := time.Now().Add(time.Minute); !slices.ContainsFunc(children(cmd.Process.Pid), hasChild); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("no rank was started")
			break
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code, text := cmd.ProcessState.ExitCode(), said.String(); code != 130 || strings.Contains(text, "killed") || !strings.HasSuffix(text, "stepbench: stopped by SIGINT: nothing was measured\n") {
		t.Errorf("exit code %d, it said %q", code, text)
	}
}

// children are the processes that one has started and that are not over.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // that thread has ended
		}
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func hasChild(pid int) bool { return len(children(pid)) > 0 }

// Two ranks, started by the launcher beside: one result, equal replicas.
func TestTwoRanks(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), built(t), strings.Fields("-nproc 2 --net conv32 --width 4 --latent 3 --batch 4 --peak-size 64 --json"+small)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	tmp := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.World != 2 || r.Batch != 2 || r.Global != 4 || r.Replicas == nil || !*r.Replicas || len(r.MaxRSS) != 2 || len(r.CommMS) != 2 || !(r.CommMS[0] > 0) || !(r.Peak > 0) {
		t.Errorf("result %+v", r)
	}
	alone, err := runs(t, "--net conv32 --width 4 --latent 3 --batch 4 --peak-size 0 --json"+small)
	var one result
	if err := errors.Join(err, json.Unmarshal([]byte(alone), &one)); err != nil || r.GFlopImg != one.GFlopImg {
		t.Errorf("%v GFLOP for each image, and %v by one rank, %v", r.GFlopImg, one.GFlopImg, err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// TestTellsHowItGoes: how many steps and samples there are is said while they are taken, and
// of what takes seconds only.
func TestTellsHowItGoes(t *testing.T) {
	o, err := parse(strings.Fields("--net conv32 --width 4 --latent 3 --batch 2 --peak-size 0 --threads 1 --steps 2 --warmup 2 --max-s 0.01"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	said := func(every time.Duration) string {
		w, err := world.Join(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		show := progressbar.ConfigurePhases(progressbar.Config{Out: &b, Late: true, Every: every})
		if err := errors.Join(rank(t.Context(), o, w, io.Discard, show), w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := said(time.Hour); got != "" {
		t.Errorf("of work that takes no time it says %q", got)
	}
	got := said(time.Nanosecond)
	for _, want := range []string{`(?m)^warm-up step 2/2  `, `(?m)^sample 2  \d quiet of 2 wanted, \d+ of at most 0\.01 s  `} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}
