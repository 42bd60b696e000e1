package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ebtrain/collective"
)

// end is how the last rank of an endless task ends.
type end string

const (
	killed  end = "killed"
	aborted end = "that aborts"
)

const (
	underWay = "under way" // a file: the ranks replay steps
	soon     = 15 * time.Second
	// waiting is how long a rank leaves the others alone before it aborts: each is then
	// inside its next captured step, where it waits for that rank's part.
	waiting = 500 * time.Millisecond
)

var errAsked = errors.New("gpucheck asks for an end")

// endless goes on with steps until the group ends. The rank that aborts does so from another
// goroutine than the one that runs steps, while the others are inside one.
func (t task) endless(ctx context.Context, s *session, comm collective.Comm) (err error) {
	if err := os.WriteFile(filepath.Join(t.Meet, underWay), nil, 0o666); err != nil {
		return err
	}
	if t.End == aborted && t.Rank == t.Ranks-1 {
		time.Sleep(waiting)
		over := make(chan struct{})
		go func() {
			comm.Abort(errAsked)
			close(over)
		}()
		<-over
	}
	for err == nil {
		_, err = s.losses(ctx, 100)
	}
	return err
}

// survive has the last rank end once all are under way; the others must by themselves, and
// say why.
func (e end) survive(ctx context.Context, cmds []*exec.Cmd, errs []strings.Builder, dir string) error {
	for {
		if _, err := os.Stat(filepath.Join(dir, underWay)); err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the ranks did not get under way: %w: %s", context.Cause(ctx), errs[0].String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	began, last := time.Now(), len(cmds)-1
	if e == killed {
		if err := cmds[last].Process.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	for rank, cmd := range cmds {
		err := cmd.Wait()
		if e == killed && rank == last {
			continue
		}
		if took := time.Since(began); took > soon {
			return fmt.Errorf("rank %d ended %v after rank %d was to", rank, took, last)
		}
		if err == nil {
			return fmt.Errorf("rank %d ended well, though rank %d has not", rank, last)
		}
		if err := e.said(rank, last, errs[rank].String()); err != nil {
			return fmt.Errorf("rank %d ended (%v): %w", rank, cmd.ProcessState, err)
		}
	}
	return nil
}

// said is what is wrong with what a rank says of the last one's end: it must name that, and
// why in one line if it is known.
func (e end) said(rank, last int, text string) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if who := fmt.Sprintf("rank %d", last); rank != last && !strings.Contains(text, who) {
		return fmt.Errorf("it says %q, which does not name %s", text, who)
	}
	if e == aborted && (!strings.HasPrefix(lines[len(lines)-1], "gpucheck: ") || strings.Count(text, errAsked.Error()) != 1) {
		return fmt.Errorf("it says %q, want %q once, in one line", text, errAsked.Error())
	}
	return nil
}
