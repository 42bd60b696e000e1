package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// crashMode has rank 1 crash, in one of the ways in which a Go program can, if this is
// the first epoch.
func crashMode(ctx context.Context, g *rendezvous.Group, args []string) (int, error) {
	if err := ready(ctx, g); err != nil {
		return 1, err
	}
	switch {
	case g.Restart() > 0:
		fmt.Println("again")
		return 0, g.Close()
	case g.Rank() != 1:
		<-g.Done()
		return 1, g.Err()
	case args[0] == "panic":
		panic(errors.New("no such layer"))
	case args[0] == "half":
		fmt.Fprint(os.Stderr, "step 41 of 100 ")
		panic(errors.New("no such layer"))
	case args[0] == "pointer":
		fmt.Println(*nowhere())
	case args[0] == "goroutine":
		go func() { panic("elsewhere") }()
	case args[0] == "signal":
		if err := unix.Kill(os.Getpid(), unix.SIGSEGV); err != nil {
			return 1, err
		}
	}
	<-ctx.Done()
	return 9, ctx.Err()
}

func nowhere() *int { return nil }

// A rank that crashes is told for what it is, and not for a mistake on the command line,
// whose code the runtime of Go ends it with.
func TestCrashedRank(t *testing.T) {
	const during = " during all-reduce generator/bucket 3, seq 8812, step 41\n"
	for how, tt := range map[string]struct {
		code int
		says string
	}{
		"panic":     {1, "panic: no such layer"},
		"half":      {1, "panic: no such layer"},
		"pointer":   {1, "panic: runtime error: invalid memory address or nil pointer dereference"},
		"goroutine": {1, "panic: elsewhere"},
		"signal":    {139, "killed by SIGSEGV"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			code, out := run1(t, "-nproc", "2", "RANKS", "crash", how)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			last := out[strings.LastIndex(out, "ddplaunch: "):]
			want(t, last, "ddplaunch: rank 1 (", "): "+tt.says+during)
			want(t, out, "[0] rank 1 (", "[1] goroutine ")
		})
	}
}

// A crash may be worth another try, a mistake on the command line is not.
func TestRestartAfter(t *testing.T) {
	t.Parallel()
	code, out := run1(t, "-nproc", "2", "--max-restarts", "3", "RANKS", "crash", "panic")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "ddplaunch: restart 1: rank 1 (", "): panic: no such layer during", "again\n")
	code, out = run1(t, "-nproc", "2", "--max-restarts", "3", "sh", "-c", "echo tried $RANK; exit 2")
	if code != 2 || strings.Contains(out, "restart 1") {
		t.Errorf("exit code %d, output\n%s", code, out)
	}
	want(t, out, "ddplaunch: the ranks are not started again: an exit status of 2 is a mistake on the command line\n")
}
