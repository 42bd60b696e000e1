package cpu

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
)

// BenchmarkGroups times every step of a BiDVL step but convolutions and
// products, each alone, and prints the most expensive ones with the bytes that
// they read and write a second, next to what this machine's memory gives:
//
//	go test ./ddp/exec/cpu -run '^$' -bench Groups -benchtime 1x
//
// The metric is the sum of all, each the best of a few runs.
func BenchmarkGroups(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads %d", threads), func(b *testing.B) {
			p := compileStep(b, open(b, Config{Threads: threads}), 64, 64, exec.Options{}).(*program)
			if err := exec.Run(context.Background(), p); err != nil {
				b.Fatal(err)
			}
			var all []timedStep
			for b.Loop() {
				p.b.do(func() { all = timeSteps(b, p, threads) })
			}
			total, moved := time.Duration(0), int64(0)
			for _, s := range all {
				total += s.best
				moved += s.bytes
			}
			b.ReportMetric(total.Seconds()*1e3, "ms/step")
			b.ReportMetric(float64(moved)/1e6, "MB/step")
			fmt.Printf("memory: %.1f GB/s\n%s", copyRate(threads), mostExpensive(all, 20)) // b.Log cuts off
		})
	}
}

// timedStep is a step and the shortest time that it took.
type timedStep struct {
	name   string
	best   time.Duration
	bytes  int64
	instrs int
}

func timeSteps(b *testing.B, p *program, threads int) (all []timedStep) {
	for i, s := range p.steps {
		switch op := p.plan.Steps[i].Op.(type) {
		case *plan.Fused:
			all = append(all, timedStep{s.op + " " + s.scope, bestOf(b, s, threads), p.plan.Traffic(i), len(op.Code) + len(op.Sums)})
		case plan.Start, plan.Wait:
		default:
			if s.flops == 0 {
				all = append(all, timedStep{s.op + " " + s.scope, bestOf(b, s, threads), p.plan.Traffic(i), 0})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y timedStep) int { return cmp.Compare(y.best, x.best) })
	return all
}

func bestOf(b *testing.B, s step, threads int) time.Duration {
	best := time.Hour
	for range 7 {
		began := now(threads)
		if err := s.Run(); err != nil {
			b.Fatal(err)
		}
		best = min(best, now(threads)-began)
	}
	return best
}

// now is a clock for so many threads: of one, its own processor time, which
// other programs disturb less.
func now(threads int) time.Duration {
	clock := int32(unix.CLOCK_THREAD_CPUTIME_ID)
	if threads > 1 {
		clock = unix.CLOCK_MONOTONIC
	}
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // these clocks always exist on Linux
	}
	return time.Duration(t.Nano())
}

func mostExpensive(all []timedStep, n int) string {
	text := fmt.Sprintf("%8s%8s%8s%5s\n", "ms", "MB", "GB/s", "ops")
	for _, s := range all[:min(n, len(all))] {
		text += fmt.Sprintf("%8.3f%8.1f%8.1f%5d  %s\n", s.best.Seconds()*1e3, float64(s.bytes)/1e6, float64(s.bytes)/s.best.Seconds()/1e9, s.instrs, s.name)
	}
	return text
}

// copyRate is the GB/s, read and written together, of a copy between arrays
// that no cache holds.
func copyRate(n int) float64 {
	size := 8 * os.Getpagesize() << 10 // 128 MB
	x, y := make([]byte, size), bytes.Repeat([]byte{1}, size)
	team := threads.NewTeam(n)
	defer team.Close()
	p := threads.NewJobs(team, 0)
	best := time.Hour
	for range 4 {
		began := time.Now()
		p.Run(copies{x, y}, size)
		best = min(best, time.Since(began))
	}
	return float64(2*size) / best.Seconds() / 1e9
}

type copies struct{ x, y []byte }

func (c copies) Part(_, w, n int) {
	lo, hi := threads.Part(len(c.x), w, n)
	copy(c.x[lo:hi], c.y[lo:hi])
}
