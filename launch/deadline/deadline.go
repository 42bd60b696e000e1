// Package deadline knows when the time of a batch job ends, and says so early
// enough that it can stop by itself.
//
// Slurm tells the end in SLURM_JOB_END_TIME, in newer versions; elsewhere squeue is
// asked. Where neither says anything there is no end. The package keeps no state;
// Watch may run in a goroutine of its own.
package deadline

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/variable"
)

const (
	askLimit = 10 * time.Second // squeue waits for its controller
	// share of the whole time that a reserve may take: jobs of a minute exist, too.
	share = 10
)

// End is when the time of the job ends that environ, in the form of os.Environ,
// describes; false if it has none, or nobody says. how is who said it. A time that is over
// is another job's, whose variables a shell has kept, or by another clock, unless Slurm says
// another: nothing is to be stopped by it.
func End(ctx context.Context, environ []string) (end time.Time, how string, ok bool) {
	job := variable.Get(environ, "SLURM_JOB_ID")
	if job == "" {
		return time.Time{}, "", false
	}
	if end, ok = seconds(variable.Get(environ, "SLURM_JOB_END_TIME")); ok && time.Now().Before(end) {
		return end, "SLURM_JOB_END_TIME", true
	}
	end, ok = ask(ctx, environ, job)
	return end, "squeue", ok && time.Now().Before(end)
}

// ask asks Slurm, which also knows of a time that was changed. A task of an array whose
// number is also the array's is told of all tasks, by their numbers. The job's key is not
// for others.
func ask(ctx context.Context, environ []string, job string) (time.Time, bool) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "squeue", "-h", "-j", job, "-o", "%A %e")
	cmd.Env = append(env.Without(environ), "SLURM_TIME_FORMAT=%s")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return time.Time{}, false // a container without it, or no answer
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == job {
			return seconds(f[1])
		}
	}
	return time.Time{}, false
}

// seconds reads a time in seconds since 1970. "NONE" and the like are no time.
func seconds(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}

// Watch waits until the end of the job is nearer than reserve, or than a tenth of
// the time there was when it was called, and calls tell. The end is asked for again
// then, as it may have been moved. It returns without a call if the job has no end,
// or ctx ends first.
func Watch(ctx context.Context, environ []string, reserve time.Duration, tell func(end time.Time, how string)) {
	end, how, ok := End(ctx, environ)
	if !ok {
		return
	}
	reserve = min(reserve, time.Until(end)/share)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(end.Add(-reserve))):
		}
		if now, ok := ask(ctx, environ, variable.Get(environ, "SLURM_JOB_ID")); ok && now.After(end) {
			end, how = now, "squeue"
			continue
		}
		if ctx.Err() == nil {
			tell(end, how)
		}
		return
	}
}
