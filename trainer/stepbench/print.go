package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// print writes the result, as a table or as JSON lines: one of the step and,
// if the ops were timed, one of them.
func (r *result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return r.printJSON(w)
	}
	t := table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	row := func(name, format string, args ...any) { t.line("%s\t%s", name, fmt.Sprintf(format, args...)) }
	row("step", "%s, batch %d over %d x %d threads (ranks x threads), %s, %.2f M parameters", r.Model, r.Global, r.World, r.Threads, r.Prec, r.ParamsM)
	row("machine", "%s, commit %s, %s", r.Go, cmp.Or(r.Commit, "unknown"), r.described)
	row("processors", "%s", r.distances)
	row("images/s", "%.2f (best %.2f)", r.ImgS, r.ImgSBest)
	row("ms/step", "%.2f (min %.2f, max %.2f)", r.StepMS, r.MinMS, r.MaxMS)
	row("samples", "%d of %d step(s), %d of them quiet; other programs took %.1f %% of the processors that the run may use", r.NIters, r.PerSample, r.NQuiet, 100*r.OtherCPU)
	row("GFLOP/s", "%.1f (%.3f GFLOP per image)", r.GFLOPS, r.GFlopImg)
	if r.Peak > 0 {
		row("of the peak", "%.0f %% of %.0f GFLOP/s, the backend's %dx%[3]d matrix product in this run", 100*r.PeakShare, r.Peak, r.PeakSize)
	}
	row("memory", "peak resident %s MiB; planned %.1f MiB and %.1f MiB of variables a rank, of which %.1f of moments", list(r.MaxRSS), r.PlannedMB, r.VarsMB, r.MomentsMB)
	row("allocated", "%s objects in a step; resident size grew by %s MiB in %.0f steps", list(r.Allocs), list(r.RSSGrowth), r.steps)
	row("waiting for ranks", "%s ms of a step, by rank", list(r.CommMS))
	row("program", "%d nodes in %d kernels, made in %.0f ms", r.Nodes, r.Kernels, r.CompileMS)
	row("losses", "%s", losses(r.Losses))
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.printWork(w); err != nil || r.ops == nil {
		return err
	}
	return r.printOps(w)
}

// table keeps its lines until Flush, which says what went wrong.
type table struct{ *tabwriter.Writer }

func (t table) line(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) }

func (r *result) printWork(w io.Writer) error {
	t := table{tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)}
	t.line("\nwork\tGFLOP/step\tshare\t")
	for _, kind := range slices.Sorted(maps.Keys(r.work)) {
		t.line("%s\t%.3f\t%.1f %%\t", kind, float64(r.work[kind])/1e9, share(float64(r.work[kind]), float64(r.work.Total())))
	}
	return t.Flush()
}

func (r *result) printOps(w io.Writer) error {
	t := table{tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)}
	t.line("\nop\tms/step\tshare\tcalls\tGFLOP/s\t")
	kinds, total := r.byTime()
	for _, kind := range kinds {
		o := r.ops[kind]
		rate := "-"
		if o.GFLOPS > 0 {
			rate = fmt.Sprintf("%.1f", o.GFLOPS)
		}
		t.line("%s\t%.2f\t%.1f %%\t%.0f\t%s\t", kind, o.MS, share(o.MS, total), o.Calls, rate)
	}
	t.line("all\t%.2f\t\t\t\t", total)
	return t.Flush()
}

// byTime are the kinds of ops, slowest first, and the time of all.
func (r *result) byTime() (kinds []string, total float64) {
	for kind, o := range r.ops {
		kinds = append(kinds, kind)
		total += o.MS
	}
	slices.SortFunc(kinds, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.ops[b].MS, r.ops[a].MS), cmp.Compare(a, b))
	})
	return kinds, total
}

// profile is the second JSON line.
type profile struct {
	Bench     string             `json:"bench"`
	Lib       string             `json:"lib"`
	Model     string             `json:"model"`
	Ch        int                `json:"ch"`
	Threads   int                `json:"threads"`
	Batch     int                `json:"batch"`
	MSPerStep float64            `json:"ms_per_step"`
	Cats      map[string]float64 `json:"cats_ms"`
	Share     map[string]float64 `json:"share"`
	Ops       map[string]opTime  `json:"ops"`
}

func (r *result) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	if err := e.Encode(r); err != nil || r.ops == nil {
		return err
	}
	p := profile{Bench: strings.TrimSuffix(r.Bench, "_step") + "_profile", Lib: r.Lib, Model: r.Model, Ch: r.Ch, Threads: r.Threads, Batch: r.Batch,
		Cats: map[string]float64{}, Share: map[string]float64{}, Ops: map[string]opTime{}}
	kinds, total := r.byTime()
	p.MSPerStep = round(total, 3)
	for _, k := range kinds {
		o := r.ops[k]
		p.Cats[k], p.Share[k] = round(o.MS, 3), round(share(o.MS, total)/100, 4)
		p.Ops[k] = opTime{round(o.MS, 3), round(o.Calls, 2), round(o.GFLOPS, 2)}
	}
	return e.Encode(p)
}

// share is part of whole in percent.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// list is "1, 2, 3".
func list[T any](v []T) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = fmt.Sprint(x)
	}
	return strings.Join(s, ", ")
}

func losses(m map[string]float64) string {
	var s []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if name != "stop" {
			s = append(s, fmt.Sprintf("%s %.4g", name, m[name]))
		}
	}
	return strings.Join(s, ", ")
}
