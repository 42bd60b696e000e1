package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/supervise"
)

// Signals of one kind are one request if they come at once, as of timeout(1), and another
// if they come later; those of another kind are always.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sent := make(chan os.Signal, 8)
		got := requests(ctx, sent)
		for _, step := range []struct {
			after time.Duration
			send  []os.Signal
			want  string
		}{
			{0, []os.Signal{unix.SIGTERM, unix.SIGTERM, unix.SIGINT, unix.SIGTERM}, "terminated interrupt"},
			{cliflag.OneRequest / 2, []os.Signal{unix.SIGTERM}, ""},
			{cliflag.OneRequest, []os.Signal{unix.SIGTERM}, "terminated"},
		} {
			time.Sleep(step.after)
			for _, s := range step.send {
				sent <- s
			}
			synctest.Wait()
			var all []string
			for len(got) > 0 {
				all = append(all, (<-got).String())
			}
			if s := strings.Join(all, " "); s != step.want {
				t.Errorf("after %v: %q, want %q", step.after, s, step.want)
			}
		}
	})
}

// carrier is a transport that can be closed.
type carrier struct {
	supervise.Transport
	closed bool
}

func (c *carrier) Close() error { c.closed = true; return nil }

// A signal ends what a launcher does before the job begins, also where that stands still; what
// it has opened meanwhile is closed.
func TestInterruptible(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration // until it returns
		heeds bool          // or when the context ends
		sent  time.Duration // when the signal comes; 0 for never
		want  time.Duration // when all is over
		stops bool
		close bool // what it has opened
	}{
		"no signal":    {time.Second, true, 0, time.Second, false, false},
		"heeds it":     {time.Hour, true, time.Minute, time.Minute, true, false},
		"soon done":    {time.Minute + stopWait/2, false, time.Minute, time.Minute + stopWait/2, true, true},
		"stands still": {time.Hour, false, time.Minute, time.Minute + stopWait, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, signals, opened := time.Now(), make(chan os.Signal, 1), &carrier{}
				if tt.sent > 0 {
					time.AfterFunc(tt.sent, func() { signals <- unix.SIGINT })
				}
				_, err := interruptible(t.Context(), signals, func(ctx context.Context) (supervise.Config, error) {
					if !tt.heeds {
						ctx = context.Background()
					}
					select {
					case <-ctx.Done():
						return supervise.Config{}, ctx.Err()
					case <-time.After(tt.takes):
						return supervise.Config{Transport: opened}, nil
					}
				})
				took := time.Since(begun)
				s, stopped := errors.AsType[*cliflag.Stopped](err)
				if took != tt.want || stopped != tt.stops || stopped && s.Signal != unix.SIGINT || !stopped && err != nil {
					t.Errorf("after %v: %v", took, err)
				}
				if opened.closed != tt.close {
					t.Errorf("closed is what it has opened: %v", opened.closed)
				}
				time.Sleep(tt.takes) // nobody is left behind here
			})
		})
	}
}

// The code of a job that has said why it ended is passed on without a word; what went wrong
// besides is said.
func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		says string
	}{
		{nil, 0, ""},
		{Exit(75), 75, ""},
		{fmt.Errorf("job: %w", Exit(137)), 137, ""},
		{errors.Join(Exit(3), errors.New("the disk is full")), 1, "prog: the job ended with code 3; the disk is full\n"},
		{cliflag.Usage("--nnodes 0"), 2, "prog: --nnodes 0 (see prog --help)\n"},
		{&cliflag.Stopped{Signal: unix.SIGINT, Rest: "the ranks were not started"}, 130, "prog: stopped by SIGINT: the ranks were not started\n"},
	} {
		var b strings.Builder
		if code := exitCode("prog", tt.err, &b); code != tt.code || b.String() != tt.says {
			t.Errorf("%v: code %d, %q, want %d, %q", tt.err, code, b.String(), tt.code, tt.says)
		}
	}
}

// The name of a job is another one each time, of characters that files and groups may have.
func TestJobName(t *testing.T) {
	plain := regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}-[0-9a-f]{12}$`)
	for _, id := range []string{"exp_1.a", "a b/c\n;é", strings.Repeat("long", 100)} {
		if a, b := jobName(id), jobName(id); a == b || !plain.MatchString(a) {
			t.Errorf("%.20q became %q and %q", id, a, b)
		}
	}
	if name := jobName("exp_1.a"); !strings.HasPrefix(name, "exp_1.a-") {
		t.Errorf("got %q", name)
	}
}

// Where the number of nodes is fixed none suffice but all, and many ask less often.
func TestNodesTold(t *testing.T) {
	if fixed, elastic := (Options{Least: 4, Nodes: 4}).fewest(), (Options{Least: 2, Nodes: 4}).fewest(); fixed != 0 || elastic != 2 {
		t.Errorf("%d of 4 to 4 nodes suffice, %d of 2 to 4", fixed, elastic)
	}
	for nodes, want := range map[int]time.Duration{2: 200 * time.Millisecond, 63: 200 * time.Millisecond, 64: 400 * time.Millisecond, 4096: time.Second} {
		if got := registerAgain(nodes); got != want {
			t.Errorf("one of %d registers each %v, want %v", nodes, got, want)
		}
	}
}
