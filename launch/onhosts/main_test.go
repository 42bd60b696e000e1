package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/netns"
)

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--hosts 0 true":  "--hosts 0: want 1 to 250",
		"--hosts 251 x":   "--hosts 251: want 1 to 250",
		"--gbit -1 true":  "--gbit -1: want more than 0",
		"--hosts 2":       "nothing to run",
		"--host 2 true":   "--host",
		"--hosts x2 true": "--hosts",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if _, usage := errors.AsType[*cliflag.UsageError](err); !usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
	if o, err := parse(strings.Fields("-hosts 3 train --hosts 5"), io.Discard); err != nil || strings.Join(o.command, " ") != "train --hosts 5" || o.hosts != 3 {
		t.Errorf("got %+v, %v", o, err)
	}
}

// A program that is nowhere is one mistake, whatever the number of hosts, and found out
// before there are any.
func TestNoProgram(t *testing.T) {
	for name, want := range map[string]string{
		"no-such-program": `program "no-such-program" cannot be run: executable file not found in $PATH: give its path, or one on PATH`,
		"./nope":          `program "./nope" cannot be run: stat ./nope: no such file or directory: give its path, or one on PATH`,
	} {
		err := run(t.Context(), []string{"--hosts", "2", name}, os.Environ(), io.Discard, io.Discard)
		if _, usage := errors.AsType[*cliflag.UsageError](err); !usage || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// lines are what several processes write at once.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// text is what they have written so far.
func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// needHosts leaves a test out where no hosts can be made, which run must say, too.
func needHosts(t *testing.T) {
	t.Helper()
	missing := netns.Possible()
	if missing == nil {
		return
	}
	if err := run(t.Context(), []string{"--hosts", "2", "true"}, os.Environ(), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), missing.Error()) {
		t.Errorf("onhosts says %v, want %v", err, missing)
	}
	t.Skip(missing)
}

// TestFailure: where the program fails on one host, it goes on to its own end on the others.
// Each leads a group, so that a terminal's signals are for onhosts, which passes them on.
func TestFailure(t *testing.T) {
	needHosts(t)
	var out lines
	script := `[ {host} != 0 ] || exit 3; sleep 0.3; read -r _ _ _ _ group _ </proc/$$/stat; [ $group = $$ ] && echo "end of {host}"`
	err := run(context.Background(), []string{"--hosts", "2", "sh", "-c", script}, os.Environ(), &out, &out)
	if err == nil || err.Error() != "node0: sh: exit status 3" || out.b.String() != "end of 1\n" {
		t.Errorf("got %v, and\n%s", err, &out.b)
	}
}

// TestStopped: when onhosts is stopped, it asks the program to end on all hosts, and waits for that.
func TestStopped(t *testing.T) {
	needHosts(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var out lines
	go func() {
		for !strings.Contains(out.text(), "up 0") || !strings.Contains(out.text(), "up 1") {
			time.Sleep(5 * time.Millisecond)
		}
		stop()
	}()
	script := `trap 'sleep 0.1; echo "asked {host}"; exit 5' TERM; echo "up {host}"; while :; do sleep 0.02; done`
	err := run(ctx, []string{"--hosts", "2", "sh", "-c", script}, os.Environ(), &out, &out)
	if err == nil || !strings.Contains(out.text(), "asked 0\n") || !strings.Contains(out.text(), "asked 1\n") {
		t.Errorf("got %v, and\n%s", err, out.text())
	}
}

// TestRun has each host say who it is, and how its link is limited; all of them get one
// key. A failure on one host is one.
func TestRun(t *testing.T) {
	needHosts(t)
	t.Setenv(keyVar, "")
	var out lines
	script := `echo "{host} of {hosts} is $(hostname), {host0} $(tc qdisc show dev eth0 | grep -o 'rate [0-9A-Za-z]*') $EBTRAIN_KEY $(pwd)"; [ {host} != 2 ]`
	err := run(context.Background(), []string{"--hosts", "3", "--gbit", "0.5", "sh", "-c", script}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, &out, &out)
	if err == nil || err.Error() != "node2: sh: exit status 1" {
		t.Errorf("got %v, want the failure of host 2 alone", err)
	}
	said := strings.Fields(strings.ReplaceAll(out.b.String(), "\n", " "))
	if len(said) != 3*10 {
		t.Fatalf("they say\n%s", &out.b)
	}
	for _, want := range []string{"0 of 3 is node0, 10.7.0.1 rate 500Mbit ", "1 of 3 is node1, 10.7.0.1 rate 500Mbit ", "2 of 3 is node2, 10.7.0.1 rate 500Mbit "} {
		if !strings.Contains(out.b.String(), want) {
			t.Errorf("no %q in\n%s", want, &out.b)
		}
	}
	if said[8] == "" || said[8] != said[18] || said[8] != said[28] || len(said[8]) < 20 {
		t.Errorf("the keys differ, or are none:\n%s", &out.b)
	}
}
