package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ebtrain/ddp/exec"
)

// profiled is how many kinds of launches a profile names.
const profiled = 24

// spent is what launches alike took.
type spent struct {
	what         string
	times        int
	took         time.Duration
	flops, bytes int64
}

// profile is where a step's time goes: what launches alike take, longest first. They run
// one after the other, replayed, with events between them, each of which takes some
// microseconds, too. All of them are written to a file.
func (s *session) profile(ctx context.Context, file string) (string, error) {
	found := map[string]*spent{}
	var sum time.Duration
	var all bytes.Buffer
	all.WriteString("begins_us\ttakes_us\tflops\tbytes\twhat\twhere\n")
	var first time.Time
	s.trace = func(e exec.Event) {
		if first.IsZero() {
			first = e.Start
		}
		fmt.Fprintf(&all, "%.1f\t%.1f\t%d\t%d\t%s\t%s\n", ms(e.Start.Sub(first))*1e3, ms(e.Time)*1e3, e.Flops, e.Bytes, e.Name, e.Scope)
		what := strings.TrimSpace(e.Kind + " " + strings.TrimPrefix(e.Name, e.Kind))
		p := found[what]
		if p == nil {
			p = &spent{what: what}
			found[what] = p
		}
		p.times, p.took, p.flops, p.bytes = p.times+1, p.took+e.Time, p.flops+e.Flops, p.bytes+e.Bytes
		sum += e.Time
	}
	defer func() { s.trace = nil }()
	if err := exec.Run(ctx, s.step); err != nil {
		return "", err
	}
	if err := os.WriteFile(file, all.Bytes(), 0o666); err != nil {
		return "", err
	}
	list := make([]*spent, 0, len(found))
	for _, p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *spent) int { return int(b.took - a.took) })
	lines := []string{fmt.Sprintf("launch by launch it takes %.2f ms:", ms(sum))}
	for _, p := range list[:min(len(list), profiled)] {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n"), nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (p *spent) String() string {
	rate := fmt.Sprintf("%5.2f TB/s  ", float64(p.bytes)/p.took.Seconds()/1e12)
	if p.flops > 0 {
		rate = fmt.Sprintf("%5.0f TFLOP/s", float64(p.flops)/p.took.Seconds()/1e12)
	}
	what := []rune(p.what)
	return fmt.Sprintf("%7.3f ms %4d times %s  %s", ms(p.took), p.times, rate, string(what[:min(len(what), 140)]))
}
