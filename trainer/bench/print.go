package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"ebtrain/collective/cost"
)

// printer keeps the first error of what it prints.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table prints rows of cells, tab-separated, the first of which is a head.
func (p *printer) table(rows []string) {
	t := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		if p.err == nil {
			_, p.err = fmt.Fprintln(t, row+"\t")
		}
	}
	if p.err == nil {
		p.err = t.Flush()
	}
}

// print writes the whole report.
func (r *Report) print(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s, %s", r.Method, r.Data)
	p.line("%s, %d thread(s) a rank; %d processors%s%s, load %.1f before", r.Device, r.Threads, r.Cores, r.named(), r.apart(), r.Load)
	if r.Sharded {
		p.line("Each of several ranks keeps a part of the optimisers' state, and moves that part of the weights (--shard-optimizer).")
	}
	p.line("%d rounds of %d step(s) for each number of ranks, in turn; %.0f s in all", r.Rounds, r.Inner, r.Took)
	if r.Rounds < fewest {
		p.line("Fewer than %d rounds: [a, b] is all that was seen, not an interval of 95 %% confidence.", fewest)
	}
	if b := r.Cases[len(r.Cases)-1]; b.Ranks*r.Threads > r.Cores*len(b.OnHosts) {
		p.line("%d ranks of %d thread(s) share %d processor(s) of a host: no efficiency near 1 can be had there.", b.Ranks, r.Threads, r.Cores)
	}
	p.scaling(r, "strong: the same batch", func(c *Case) (bool, *cost.Interval) { return c.Strong, c.StrongEfficiency })
	p.scaling(r, "weak: the same batch for each rank", func(c *Case) (bool, *cost.Interval) { return c.Weak, c.WeakEfficiency })
	p.line("\nof a step, in ms (medians)")
	rows := []string{"ranks\tbatch\tcompute\texposed\tdata\tslowest\tprocessor\tothers\twho is slowest, and how often"}
	for _, c := range r.Cases {
		rows = append(rows, fmt.Sprintf("%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s", c.Ranks, c.Batch, c.Compute/1e3, c.Exposed/1e3, c.Data/1e3, c.Slowest/1e3, c.Busy/1e3, c.Others, who(c)))
	}
	p.table(rows)
	p.short(r)
	if p.err != nil {
		return p.err
	}
	return r.printPredictions(w)
}

// short says of which cases the parts are far from adding up to the step: they are medians,
// each for itself, and where steps are slow for one reason now and for another then, each
// is that of the steps that were slow for the other.
func (p *printer) short(r *Report) {
	const far = 0.1
	for _, c := range r.Cases {
		if sum := c.Compute + c.Exposed + c.Data + c.Slowest; !(math.Abs(sum-c.Step.Value) <= far*c.Step.Value) {
			p.line("The parts of %d rank(s) with a batch of %d add up to %.2f ms and not %.2f: each is the median for itself, and steps differed much. They say little, so measure where less else runs.", c.Ranks, c.Batch, sum/1e3, c.Step.Value/1e3)
		}
	}
}

func (p *printer) scaling(r *Report, title string, of func(*Case) (bool, *cost.Interval)) {
	rows := []string{"ranks\thosts\tbatch\t" + cmp.Or(r.Speed, "images/s") + "\tms/step\tefficiency"}
	for _, c := range r.Cases {
		is, e := of(c)
		if !is {
			continue
		}
		text := "1"
		if e != nil {
			text = between(*e, 1, 3)
		}
		rows = append(rows, fmt.Sprintf("%d\t%s\t%d\t%s\t%s\t%s", c.Ranks, hosts(c.OnHosts), c.Batch, between(c.Images, 1, 1), between(c.Step, 1e3, 2), text))
	}
	if len(rows) < 3 { // a case alone
		if len(rows) == 1 || title[0] == 'w' && len(r.Cases) == 1 {
			return
		}
	}
	p.line("\n%s", title)
	p.table(rows)
}

// hosts is "1", or "2 (4+4)".
func hosts(ranks []int) string {
	if len(ranks) == 1 {
		return "1"
	}
	s := make([]string, len(ranks))
	for i, n := range ranks {
		s[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%s)", len(ranks), strings.Join(s, "+"))
}

// between is "12.3 [12.1, 12.5]", of i in some unit.
func between(i cost.Interval, unit float64, digits int) string {
	return fmt.Sprintf("%.*f [%.*f, %.*f]", digits, i.Value/unit, digits, i.Low/unit, digits, i.High/unit)
}

// who is the rank that is slowest most often.
func who(c *Case) string {
	if len(c.SlowestShare) == 0 {
		return "-"
	}
	share := slices.Max(c.SlowestShare)
	return fmt.Sprintf("rank %d, %.0f %%", slices.Index(c.SlowestShare, share), 100*share)
}
