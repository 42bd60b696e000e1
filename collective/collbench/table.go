package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/host"
	"ebtrain/collective/timing"
)

// table is what is printed, and so measured.
type table struct {
	w     io.Writer
	kind  collective.Kind
	hosts int
	floor bool        // there is one
	least *host.Least // nil if there is none
}

// measure measures one size and prints its line.
func (t table) measure(ctx context.Context, p place, opt options, mem, shared collective.Vec, s *stream) (cost.Size, error) {
	size, err := timing.Measure(ctx, p.Comm, timing.Plan{Kind: opt.kind, Op: opt.op, Type: opt.dtype, Iters: opt.iters, MaxTime: opt.maxTime}, mem)
	if err != nil {
		return size, err
	}
	if t.floor {
		if size.Floor, err = floorOf(ctx, p, opt, shared.Slice(0, mem.Len).As(opt.dtype)); err != nil {
			return size, err
		}
		size.FloorShare = size.Floor.Median / size.Median
	}
	if t.least != nil && mem.Len <= leastBytes {
		if size.Least, err = leastOf(ctx, p, opt, t.least, mem.As(opt.dtype)); err != nil {
			return size, err
		}
		size.LeastShare = size.Least.Median / size.Median
	}
	if t.hosts > 1 {
		if size.Stream, err = s.times(ctx, p, opt, mem.Len); err != nil {
			return size, err
		}
		size.StreamShare = size.Stream.Median * timing.BusFactor(opt.kind, t.hosts) / size.Median
	}
	return size, t.line(size)
}

func (t table) head(r cost.Report) error {
	hosts := "1 host"
	if t.hosts > 1 {
		hosts = fmt.Sprintf("%d hosts, TCP", t.hosts)
	}
	text := fmt.Sprintf("# %s %s %s, %d ranks on %s; memory %s\n# %d processors, load %.1f\n#%9s %9s %9s %7s",
		r.Collective, r.Op, r.Type, r.World, hosts, r.Memory, r.CPUs, r.Load, "bytes", "best us", "median us", "algbw")
	if t.bus() {
		text += fmt.Sprintf(" %7s", "busbw")
	}
	if t.floor {
		text += fmt.Sprintf(" %9s %5s", "floor us", "share")
	}
	if t.hosts > 1 {
		text += fmt.Sprintf(" %9s %5s", "stream us", "share")
	}
	_, err := fmt.Fprintf(t.w, "%s %5s\n", text, "wrong")
	return err
}

// bus says whether there is room for busbw.
func (t table) bus() bool { return !t.floor || t.hosts == 1 }

func (t table) line(s cost.Size) error {
	text := fmt.Sprintf("%10d %9.1f %9.1f %7.3f", s.Bytes, s.Best, s.Median, s.Algorithm)
	if t.bus() {
		text += fmt.Sprintf(" %7.3f", s.Bus)
	}
	if s.Floor != nil {
		text += fmt.Sprintf(" %9.1f %5.2f", s.Floor.Median, s.FloorShare)
	}
	if s.Stream != nil {
		text += fmt.Sprintf(" %9.1f %5.2f", s.Stream.Median, s.StreamShare)
	}
	_, err := fmt.Fprintf(t.w, "%s %5d\n", text, s.Wrong)
	return err
}

// leastText is what small vectors take at least, beside what they took.
func leastText(r cost.Report) string {
	if r.Meeting == nil {
		return ""
	}
	text := fmt.Sprintf("# a barrier takes %.2f us at least; small vectors\n#%9s %9s %5s\n", r.Meeting.Median, "bytes", "least us", "share")
	for _, s := range r.Sizes {
		if s.Least != nil {
			text += fmt.Sprintf("#%9d %9.2f %5.2f\n", s.Bytes, s.Least.Median, s.LeastShare)
		}
	}
	return text
}

// foot prints what small vectors take at least, and the lines.
func (t table) foot(r cost.Report) error {
	if _, err := fmt.Fprint(t.w, leastText(r)); err != nil {
		return err
	}
	if r.Fit == nil {
		_, err := fmt.Fprintln(t.w, "# no line is fitted: that needs three sizes")
		return err
	}
	text := "# time = latency + bytes/bandwidth, and 95 % confidence\n"
	var names []string
	var lines []*cost.Line
	for _, l := range []struct {
		name string
		line *cost.Line
	}{{r.Collective, r.Fit}, {"floor", r.FloorFit}, {"stream", r.StreamFit}} {
		if l.line == nil {
			continue
		}
		names, lines = append(names, l.name), append(lines, l.line)
		a, b := l.line.Latency, l.line.Bandwidth
		text += fmt.Sprintf("# %-14s %s us (%s to %s), %s GB/s (%s to %s)\n", l.name,
			short(a.Value), short(a.Low), short(a.High), short(b.Value), short(b.Low), short(b.High))
	}
	text += fmt.Sprintf("# measured above its line, in %%\n#%9s", "bytes")
	for _, n := range names {
		text += fmt.Sprintf(" %14s", n)
	}
	for i, s := range r.Sizes {
		text += fmt.Sprintf("\n%10d", s.Bytes)
		for _, l := range lines {
			text += fmt.Sprintf(" %+14.0f", 100*l.Residuals[i])
		}
	}
	_, err := fmt.Fprintln(t.w, text)
	return err
}

// short is x with three digits.
func short(x float64) string {
	if x >= 1e6 {
		return "any"
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
