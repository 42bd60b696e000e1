package deadline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// squeue puts a stand-in of Slurm's on PATH that prints what the file "says" holds, between
// other tasks of an array, if it is called as the real one is.
func squeue(t *testing.T, says string) (change func(string)) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "says")
	script := "#!/bin/sh\n[ \"$*\" = '-h -j 7 -o %A %e' ] && [ \"$SLURM_TIME_FORMAT\" = %s ] && [ -z \"$EBTRAIN_KEY\" ] && echo 8 1795000000 && echo 7 $(cat " + file + ") && echo 9 N/A && exit\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "squeue"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	change = func(says string) {
		if err := os.WriteFile(file, []byte(says+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change(says)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return change
}

// The clock is that of a bubble, which begins in 2000.
func TestEnd(t *testing.T) { synctest.Test(t, testEnd) }

func testEnd(t *testing.T) {
	squeue(t, "1795347414")
	for _, c := range []struct {
		environ []string
		unix    int64
		how     string
	}{
		{[]string{"SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=1795340000"}, 1795340000, "SLURM_JOB_END_TIME"},
		{[]string{"SLURM_JOB_ID=7", "EBTRAIN_KEY=secret"}, 1795347414, "squeue"},
		{[]string{"SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=soon"}, 1795347414, "squeue"},
		{[]string{"SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=900000000"}, 1795347414, "squeue"}, // of 1998
	} {
		if end, how, ok := End(t.Context(), c.environ); !ok || end.Unix() != c.unix || how != c.how {
			t.Errorf("%q: got %v by %s, %v", c.environ, end, how, ok)
		}
	}
	// Variables of a job that is over, which a shell has kept, and a clock that is years ahead.
	for _, environ := range [][]string{nil, {"SLURM_JOB_END_TIME=1795340000"}, {"SLURM_JOB_ID=8"}, {"SLURM_JOB_ID=8", "SLURM_JOB_END_TIME=900000000"}} {
		if end, how, ok := End(t.Context(), environ); ok {
			t.Errorf("%q: got %v by %s", environ, end, how)
		}
	}
	squeue(t, "900000000")
	if end, how, ok := End(t.Context(), []string{"SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=900000000"}); ok {
		t.Errorf("a time that is over for both: got %v by %s", end, how)
	}
	t.Setenv("PATH", t.TempDir())
	if end, how, ok := End(t.Context(), []string{"SLURM_JOB_ID=7"}); ok {
		t.Errorf("without squeue: got %v by %s", end, how)
	}
}

// A job without an end is not waited for.
func TestNoEnd(t *testing.T) {
	for _, says := range []string{"NONE", "N/A", "", "0"} {
		squeue(t, says)
		Watch(t.Context(), []string{"SLURM_JOB_ID=7"}, time.Hour, func(end time.Time, how string) { t.Errorf("%q: told of %v by %s", says, end, how) })
	}
}

// The end is told a tenth of the time before it, once; an end that is moved is
// waited for anew. The clock is the test's: it stands while the stand-in of squeue runs.
func TestWatch(t *testing.T) {
	change := squeue(t, "")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		first, second := begun.Add(time.Minute), begun.Add(2*time.Minute)
		change(fmt.Sprint(first.Unix()))
		time.AfterFunc(50*time.Second, func() { change(fmt.Sprint(second.Unix())) })
		calls := 0
		Watch(t.Context(), []string{"SLURM_JOB_ID=7"}, time.Hour, func(end time.Time, how string) {
			calls++
			if left := time.Until(second); !end.Equal(second) || how != "squeue" || left != 6*time.Second {
				t.Errorf("told of %v by %s with %v left, want %v with 6s", end, how, left, second)
			}
		})
		if calls != 1 {
			t.Errorf("told %d times", calls)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		Watch(ctx, []string{"SLURM_JOB_ID=7", fmt.Sprint("SLURM_JOB_END_TIME=", time.Now().Add(time.Hour).Unix())}, time.Minute, func(time.Time, string) { t.Error("told of it") })
		if err := ctx.Err(); err == nil {
			t.Error("it waited for neither")
		}
	})
}
