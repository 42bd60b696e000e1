package main

import (
	"fmt"
	"strings"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/jump"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/setting"
)

// watched is a watch over the losses of a report.
func watched(report []algo.Column) *jump.Watch {
	var names []string
	for _, c := range report {
		if c.Loss() {
			names = append(names, c.Name)
		}
	}
	return jump.New(names)
}

// remember shows the watch a step of before a resume, whose jumps have been told of: that
// of each has its line.
func (r *recorder) remember(line rundir.Record) { r.watch.See(line.Step, line.Losses) }

// warn says, once for each loss, that one has jumped in this step, and if so.
func (r *recorder) warn(step int64) (some bool, err error) {
	j, some := r.watch.See(step, r.step.losses)
	if !some {
		return false, nil
	}
	line := jumped(j, instead(r.o, j.Step))
	r.file.Warn("a loss jumps", "says", line)
	_, err = fmt.Fprintln(r.show, "warning: "+line)
	return true, err
}

// jumped is what is said of it. That the loss comes back is no comfort: the weights whose
// gradients jumped with it are held by Adam's second moments (see package jump).
func jumped(j jump.Jump, instead string) string {
	return fmt.Sprintf("%s jumps to %.3g, from at most %.3g (step %d of metrics.jsonl): even if it comes back, Adam leaves the weights behind it nearly still for many steps; if the run goes on badly, begin another with %s",
		j.Loss, j.Value, j.Before, j.Step, instead)
}

// early is how many steps of a run a warm-up is advised to take, and is of use to: losses
// that jumped in the first ten steps did not with it (trainer/method/bidvl/DESIGN.md).
const early = 50

// instead are the settings with which a loss is likely not to jump as it did in a step.
func instead(o *options, step int64) string {
	var all []string
	if m, ok := o.model.Model().(algo.Steadying); ok && m.Steadier() != "" {
		all = append(all, m.Steadier())
	}
	for _, s := range o.own.All() {
		if s.Name == "warmup" && s.String() == "0" && step < early {
			all = append(all, fmt.Sprintf("--warmup %d", early))
		}
	}
	return strings.Join(append(all, "a lower "+setting.Choices(rates(o.own))), ", or with ")
}

// rates are the flags of the learning rates that are in use: another setting may leave one
// without effect, and where one may be 0, that means that another takes its place.
func rates(own *setting.Set) []string {
	var flags []string
	for _, s := range own.All() {
		if s.Rate() && s.String() != "0" && !own.Useless(s.Name) {
			flags = append(flags, "--"+s.Name)
		}
	}
	return flags
}
