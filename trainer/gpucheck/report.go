package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/trainer/run/rundir"
)

// report is what was found, written after each check.
type report struct {
	Started time.Time     `json:"started"`
	Commit  string        `json:"commit"` // of the checkout, "+modified" if it was
	Devices []driver.Info `json:"devices"`
	Checks  []finding     `json:"checks"`

	folder string
	stdout io.Writer

	// Of the process that does the checks: how many it leaves out, as they are done,
	// how many it has come to, and whom it tells.
	from, number int
	tell         func(message) error
	ended        bool // one has failed
}

// finding is one thing that was looked at.
type finding struct {
	Part    string         `json:"part"`
	Name    string         `json:"name"`
	OK      bool           `json:"ok"`
	Skipped bool           `json:"skipped,omitempty"` // what it needs is not there
	Seconds float64        `json:"seconds"`
	Text    string         `json:"text,omitempty"`
	Numbers map[string]any `json:"numbers,omitempty"`
}

// errSkipped is in the error of a check that needs what is not there.
var errSkipped = errors.New("not done")

// lacking says whether a check's error is of what is not there: a tool, or bfloat16 on GPUs
// that do not multiply in it.
func lacking(err error) bool { return errors.Is(err, errSkipped) || errors.Is(err, cuda.ErrNoBF16) }

// commit is set by the linker, as a build in another worktree of git's does not note it.
var commit string

func newReport(folder string, devices []driver.Info, stdout io.Writer) (*report, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	made := cmp.Or(commit, rundir.ThisBuild().Commit)
	r := &report{Started: time.Now().UTC(), Devices: devices, Commit: made, folder: folder, stdout: stdout}
	for _, d := range devices {
		if _, err := fmt.Fprintln(stdout, d); err != nil {
			return nil, err
		}
	}
	return r, r.write()
}

// do does a check, unless the time is over, and tells how it went. After one that failed
// the process ends: what the GPU does to a process is not over with a check.
func (r *report) do(ctx context.Context, part, name string, f func() (text string, numbers map[string]any, err error)) error {
	if r.number++; r.number <= r.from || r.ended {
		return nil
	}
	c := finding{Part: part, Name: name}
	if _, err := fmt.Printf("%s: %s\n%s", part, name, marker); err != nil {
		return err
	}
	if err := r.tell(message{Began: &c}); err != nil {
		return err
	}
	began := time.Now()
	if ctx.Err() != nil {
		c.Skipped, c.Text = true, context.Cause(ctx).Error()
	} else {
		text, numbers, err := f()
		c.OK, c.Text, c.Numbers = err == nil, text, finite(numbers)
		if err != nil {
			c.Skipped = lacking(err) || ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) // cut off by the limit
			c.Text = strings.TrimSpace(text + "\n" + err.Error())
		}
	}
	c.Seconds = time.Since(began).Seconds()
	r.Checks = append(r.Checks, c)
	r.ended = !c.OK && !c.Skipped
	return r.tell(message{Ended: &c})
}

// finite makes words of numbers that JSON has not.
func finite(numbers map[string]any) map[string]any {
	for k, v := range numbers {
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			numbers[k] = fmt.Sprint(f)
		}
	}
	return numbers
}

// briefLines of a check's text are printed; all are in the report.
const briefLines = 12

// add notes a check.
func (r *report) add(c finding) error {
	r.Checks = append(r.Checks, c)
	brief := c
	if lines := strings.Split(c.Text, "\n"); len(lines) > briefLines {
		brief.Text = strings.Join(append(lines[:briefLines], fmt.Sprintf("… and %d lines in report.txt", len(lines)-briefLines)), "\n")
	}
	if _, err := fmt.Fprintln(r.stdout, brief); err != nil {
		return err
	}
	return r.write()
}

// found is a number that a check has found, 0 if it has not.
func (r *report) found(name, key string) float64 {
	for _, c := range r.Checks {
		if v, ok := c.Numbers[key].(float64); ok && c.Name == name {
			return v
		}
	}
	return 0
}

// String is a check on one line, and its text below.
func (c finding) String() string {
	state := "FAILED"
	switch {
	case c.OK:
		state = "ok"
	case c.Skipped:
		state = "skipped"
	}
	s := fmt.Sprintf("%s  %-7s %6.1f s  %s", c.Part, state, c.Seconds, c.Name)
	if len(c.Numbers) > 0 {
		b, err := json.Marshal(c.Numbers)
		if err == nil {
			s += "  " + string(b)
		}
	}
	if c.Text != "" {
		s += "\n      " + strings.ReplaceAll(c.Text, "\n", "\n      ")
	}
	return s
}

// failed names the checks that failed.
func (r *report) failed() (names []string) {
	for _, c := range r.Checks {
		if !c.OK && !c.Skipped {
			names = append(names, c.Part+": "+c.Name)
		}
	}
	return names
}

// read takes the checks that another process has done.
func (r *report) read(folder string) error {
	b, err := os.ReadFile(filepath.Join(folder, "report.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, r)
}

// write writes both forms anew.
func (r *report) write() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "gpucheck of %s, commit %s\n", r.Started.Format(time.DateTime), r.Commit)
	for _, d := range r.Devices {
		fmt.Fprintln(&text, d)
	}
	for _, c := range r.Checks {
		fmt.Fprintln(&text, c)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.folder, "report.json"), append(b, '\n'), 0o666),
		os.WriteFile(filepath.Join(r.folder, "report.txt"), []byte(text.String()), 0o666))
}
