package main

import (
	"fmt"
	"io"
	"slices"

	"ebtrain/collective/cost"
)

// printPredictions prints all that is fitted and predicted, and what is not known.
func (r *Report) printPredictions(w io.Writer) error {
	p := &printer{w: w}
	if r.Model != nil {
		p.model(r)
	}
	if len(r.Checks) > 0 {
		p.checks(r)
	}
	if len(r.Predictions) > 0 {
		p.predictions(r)
	}
	if len(r.Unmeasured) > 0 {
		p.line("\nwhat was not measured")
	}
	for _, s := range r.Unmeasured {
		p.line("%s", s)
	}
	return p.err
}

// model prints the costs.
func (p *printer) model(r *Report) {
	p.line("\ncosts of collectives, fitted on up to %d ranks, 95 %% confidence", r.FitUpTo)
	rows := []string{"\tlatency us\tmessage us\tns/byte\tadding ns/byte"}
	for _, c := range []struct {
		name  string
		costs cost.Costs
	}{{"inside a host", r.Model.Within}, {"between hosts", r.Model.Between}} {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s", c.name, between(c.costs.Latency, 1, 1), between(c.costs.Message, 1, 1), between(c.costs.PerByte, 1, 3), between(c.costs.Reduce, 1, 3)))
	}
	p.table(rows)
	p.residuals(r.Model.Measured)
	for _, d := range r.Model.Doubts {
		p.line("Doubtful: %s.", d)
	}
	p.waits(r)
}

// waits prints what a wait costs where ranks share processors, and how it is known.
func (p *printer) waits(r *Report) {
	rows := []string{"ranks\tin groups of\tms/step\tprocessor ms\tbeside busy threads\ta wait: processor us\tdelay us"}
	for _, o := range r.Beside {
		if o.Step > 0 {
			rows = append(rows, fmt.Sprintf("%d\t%d\t%.2f\t%s\t%s\t%.1f\t%.1f", o.Ranks, o.Group, o.Step/1e3, ms(o.Busy), ms(r.AmongBusy), o.Wake, o.Delay))
		}
	}
	if len(rows) == 1 {
		return
	}
	p.line("\nwhat a wait costs where ranks share processors, fitted to groups side by side")
	p.table(rows)
	p.line("Ranks that wake together share processors for the first part, and are late together by the second. %s", r.told())
}

// ms is a time of microseconds that is 0 if it is not known.
func ms(us float64) string {
	if us == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", us/1e3)
}

// told says what tells the parts of a wait's cost apart.
func (r *Report) told() string {
	switch known := slices.ContainsFunc(r.Beside, func(o *Beside) bool { return r.seen(o) > 0 }); {
	case r.Threads > 1:
		return "All is taken for the first: of ranks with several threads nothing tells."
	case !known:
		return "All is taken for the first: this report does not say what ranks had of processors."
	case r.AmongBusy == 0:
		return "The first may be too much: this report is of steps in which ranks looked for messages, too."
	}
	return "The first is what a rank had of them beyond computing and messages."
}

func (p *printer) checks(r *Report) {
	p.line("\ncheck: ms/step, predicted from up to %d ranks, and measured", r.FitUpTo)
	rows := []string{"ranks\tbatch\tpredicted\tmeasured\terror"}
	for _, c := range r.Checks {
		rows = append(rows, fmt.Sprintf("%d\t%d\t%s\t%s\t%+.0f %%", c.Ranks, c.Batch, between(c.Predicted, 1e3, 2), between(c.Measured, 1e3, 2), 100*c.Error))
	}
	p.table(rows)
}

// shown is how many losses are named.
const shown = 3

func (p *printer) predictions(r *Report) {
	p.foreseen(r, false, "weak, a batch of %d for each rank", func(q Prediction) int { return q.Batch / q.Ranks })
	p.foreseen(r, true, "strong, a batch of %d over all ranks", func(q Prediction) int { return q.Batch })
	if slices.ContainsFunc(r.Predictions, func(q Prediction) bool { return q.Strong }) {
		if fixed, each, batches := r.line(); len(batches) > 1 {
			p.line("With fewer samples a rank computes less: %.2f ms and %.2f for each sample, the line through measured batches of %s.", fixed/1e3, each/1e3, list(batches))
		} else {
			p.line("With fewer samples a rank is taken to compute in proportion less, since one size of its batch was measured (--scaling both has more).")
		}
	}
	if len(r.Unshared) > 0 {
		p.line("Strong scaling is not predicted for %s ranks: they cannot share the batch equally.", list(r.Unshared))
	}
	for _, q := range r.Predictions {
		text := fmt.Sprintf("%s lose most by", q.who())
		for i, l := range q.Losses[:min(shown, len(q.Losses))] {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf(" %s (%.1f %%)", l.Name, 100*l.Share)
		}
		p.line("%s.", text)
	}
	p.remedies(r)
}

// remedies prints what is worth removing.
func (p *printer) remedies(r *Report) {
	var all []string
	for _, q := range r.Predictions {
		for _, m := range q.Remedies {
			if m.Say != "" {
				all = append(all, m.Say)
			}
		}
	}
	if len(all) > 0 {
		p.line("Costs hide behind each other, so without one of them a step may be shorter by less than its share, or by more:")
	}
	for _, say := range all {
		p.line("%s", say)
	}
}

// foreseen prints the predictions of strong or of weak scaling.
func (p *printer) foreseen(r *Report, strong bool, title string, batch func(Prediction) int) {
	rows := []string{"ranks\tbatch\tms/step\tefficiency"}
	for _, q := range r.Predictions {
		if q.Strong != strong {
			continue
		}
		if len(rows) == 1 {
			p.line("\npredicted, not measured, %d ranks on each host: "+title, q.PerHost, batch(q))
		}
		rows = append(rows, fmt.Sprintf("%d\t%d\t%s\t%s", q.Ranks, q.Batch, between(q.Step, 1e3, 2), between(q.Efficiency, 1, 3)))
	}
	if len(rows) > 1 {
		p.table(rows)
	}
}

// who is the ranks of a prediction in a sentence.
func (q Prediction) who() string {
	if q.Strong {
		return fmt.Sprintf("%d ranks with a batch of %d", q.Ranks, q.Batch)
	}
	return fmt.Sprintf("%d ranks", q.Ranks)
}
