package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// most packages may be run again: where more fail it is no chance.
const most = 3

// failures are the packages that failed, by name.
type failures map[string]*failure

type failure struct {
	tests []string // that failed, without subtests
	whole bool     // others were not run, or it was no test that failed
	never bool     // running it again would say nothing: it does not compile, or races
}

func (f failures) of(pkg string) *failure {
	if f[pkg] == nil {
		f[pkg] = &failure{}
	}
	return f[pkg]
}

func (f failures) test(pkg, test string) {
	top, _, _ := strings.Cut(test, "/")
	of := f.of(pkg)
	of.tests = append(of.tests, top)
}

// end notes that a package failed, and how; texts are what it has written. cut is that it
// did not compile or never ended.
func (f failures) end(pkg string, cut bool, texts []string) {
	of := f.of(pkg)
	of.never = cut
	of.whole = len(of.tests) == 0
	for _, text := range texts {
		of.never = of.never || strings.Contains(text, "WARNING: DATA RACE")
		of.whole = of.whole || strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
	}
}

// again is a line for each package: its name, a space and, unless all its tests are to be
// run again, the flag that chooses those that failed. It is "" if nothing failed, or if what
// failed cannot be by chance.
func (f failures) again() string {
	if len(f) > most {
		return ""
	}
	var text strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(f)) {
		of := f[pkg]
		switch {
		case of.never:
			return ""
		case of.whole:
			fmt.Fprintf(&text, "%s \n", pkg)
		default:
			slices.Sort(of.tests)
			fmt.Fprintf(&text, "%s -run=^(%s)$\n", pkg, strings.Join(slices.Compact(of.tests), "|"))
		}
	}
	return text.String()
}
