package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action  string // what happened
	Package string
	Test    string // "" if it is the package's own
	Output  string // with its newline

	FailedBuild string // of a package that fails: what does not compile, if so
}

// view is what go test has told so far.
type view struct {
	out      io.Writer
	packages map[string]*report  // of those that are not done
	skipped  map[string][]string // package of each skipped test, by its sentence
	failures failures
}

// report is what a package and its tests have written, but tests that are done and did
// not fail.
type report struct {
	tests []string // in the order in which they began; "" is the package
	texts map[string][]string
}

func newView(out io.Writer) *view {
	return &view{out: out, packages: map[string]*report{}, skipped: map[string][]string{}, failures: failures{}}
}

func (v *view) event(e event) error {
	if e.Action == "build-output" {
		return v.show(e.Output)
	}
	if e.Package == "" {
		return nil
	}
	r := v.packages[e.Package]
	if r == nil {
		r = &report{texts: map[string][]string{}}
		v.packages[e.Package] = r
	}
	switch {
	case e.Action == "output":
		r.add(e.Test, e.Output)
	case e.Test != "":
		if e.Action == "fail" {
			v.failures.test(e.Package, e.Test)
		}
		if e.Action == "skip" {
			s := sentence(r.texts[e.Test])
			v.skipped[s] = append(v.skipped[s], e.Package)
		}
		if e.Action == "skip" || e.Action == "pass" {
			r.forget(e.Test)
		}
	case e.Action == "fail":
		delete(v.packages, e.Package)
		texts := r.all()
		v.failures.end(e.Package, e.FailedBuild != "", texts)
		return v.show(texts...)
	case e.Action == "pass", e.Action == "skip": // "skip": it has no tests
		delete(v.packages, e.Package)
		own := r.texts[""]
		return v.show(own[max(0, len(own)-1):]...) // "ok", its name and its time
	}
	return nil
}

// end shows what packages have written that never came to their end.
func (v *view) end() error {
	for _, name := range slices.Sorted(maps.Keys(v.packages)) {
		v.failures.end(name, true, nil)
		if err := v.show(v.packages[name].all()...); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) show(texts ...string) error {
	_, err := io.WriteString(v.out, strings.Join(texts, ""))
	return err
}

// add notes what a test has written, without what only -v prints, which -json implies.
func (r *report) add(test, text string) {
	if strings.HasPrefix(text, "=== ") {
		return
	}
	if _, ok := r.texts[test]; !ok {
		r.tests = append(r.tests, test)
	}
	r.texts[test] = append(r.texts[test], text)
}

func (r *report) forget(test string) {
	delete(r.texts, test)
	r.tests = slices.DeleteFunc(r.tests, func(t string) bool { return t == test })
}

// all is what is left, test by test, and last of all the package's own.
func (r *report) all() []string {
	var texts []string
	for _, test := range r.tests {
		if test != "" {
			texts = append(texts, r.texts[test]...)
		}
	}
	return append(texts, r.texts[""]...)
}

// logged is how a line of a test's log begins.
var logged = regexp.MustCompile(`^\s+[^\s:]+\.go:\d+: `)

// sentence is what a test logged last, on one line.
func sentence(texts []string) string {
	said := "no reason is given"
	for _, text := range texts {
		begin := logged.FindString(text)
		text = strings.TrimSpace(text)
		switch {
		case begin != "":
			said = strings.TrimPrefix(text, strings.TrimSpace(begin)+" ")
		case !strings.HasPrefix(text, "--- SKIP: "):
			said += " " + text // a sentence of several lines
		}
	}
	return said
}

// summary is what was left out, a sentence a line, those of most tests first; "" if
// nothing was.
func (v *view) summary() string {
	sentences := slices.Collect(maps.Keys(v.skipped))
	slices.SortFunc(sentences, func(a, b string) int {
		return cmp.Or(len(v.skipped[b])-len(v.skipped[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, s := range sentences {
		in := slices.Sorted(slices.Values(v.skipped[s]))
		fmt.Fprintf(&text, "%4d  %s (%s)\n", len(in), s, strings.Join(slices.Compact(in), ", "))
	}
	return text.String()
}
