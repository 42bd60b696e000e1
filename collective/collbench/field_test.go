package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTogether: programs of one job end together: when one fails, or cannot be started, the
// others are ended, and the error is that one's, with what it has said.
func TestTogether(t *testing.T) {
	f, err := newField(options{nproc: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		cmds   []string // of the shell; the first of several would take a minute
		bin    string   // of the last
		want   string
		killed bool // the first
	}{
		{"well", []string{"true", "true"}, "sh", "", false},
		{"one fails", []string{"exec sleep 60", "echo odd >&2; exit 3"}, "sh", `rank 1: exit status 3; it said "odd"`, true},
		{"alone", []string{"echo odd >&2; exit 3"}, "sh", `exit status 3; it said "odd"`, false},
		{"no such program", []string{"exec sleep 60", ""}, "/nowhere/sh", "fork/exec /nowhere/sh: no such file or directory", true},
	} {
		var cmds []*exec.Cmd
		for i, text := range test.cmds {
			bin := "sh"
			if i == len(test.cmds)-1 {
				bin = test.bin
			}
			cmds = append(cmds, f.command(t.Context(), i, bin, "-c", text))
		}
		used, err := together(cmds)
		var all time.Duration
		for _, cmd := range cmds {
			if s := cmd.ProcessState; s != nil {
				all += s.UserTime() + s.SystemTime()
			}
		}
		if test.want == "" && (err != nil || used != all) || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: used %v of %v, got error %v, want %q", test.name, used, all, err, test.want)
		}
		if test.killed {
			if s := cmds[0].ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
				t.Errorf("%s: the first program ended with %v, want SIGKILL", test.name, cmds[0].ProcessState)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := together([]*exec.Cmd{f.command(ctx, 0, "sleep", "60"), f.command(ctx, 1, "sleep", "60")}); !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "killed")) {
		t.Errorf("the context has ended, and the programs with %v", err)
	}
}
