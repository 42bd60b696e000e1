// Package setting is the settings of a training method that a user may change:
// each has a name, a help text, a range, and a place among the others. A program
// makes flags of them; methods know no flags.
//
// A method adds its settings to a Set, as pointers into its own configuration.
// Whoever reads them from a user gives each the text that the user typed
// (Setting.Set), in any order, and then calls Set.Finish, which reports the
// first value out of its range and lets the method finish what depends on
// several of them.
//
// A Set belongs to one goroutine.
package setting

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Places that methods share; a method may have others.
const (
	Trained    = "What is trained"
	Losses     = "Its losses"
	Optimisers = "Its optimisers"
)

// Setting is one of them. String, Set and Type are what a flag's value needs.
type Setting struct {
	Name  string // of the flag, without dashes
	Help  string
	Place string // title of the group that help shows it in

	usual string // its value as it was added
	kind  string // of value, for help: "int", "float64", "string", "bool"
	show  func() string
	read  func(text string) error // reports only text that is no such value
	check func() error            // reports a value out of range; may be nil
}

// String is its value as Set takes it.
func (s *Setting) String() string { return s.show() }

// Set reads its value from text.
func (s *Setting) Set(text string) error { return s.read(text) }

// Type is the kind of its value: "int", "float64", "string" or "bool".
func (s *Setting) Type() string { return s.kind }

// Rate says whether it is a learning rate, by its name: lr, lr-… or …-lr, but not
// lr-decay.
func (s *Setting) Rate() bool {
	return s.Name == "lr" || strings.HasPrefix(s.Name, "lr-") && s.Name != "lr-decay" || strings.HasSuffix(s.Name, "-lr")
}

// Set is the settings of a method, in the order in which help shows them.
type Set struct {
	all   []*Setting
	place string
	idle  []idle
	after []func() error
}

// Place titles the group of the settings that follow.
func (s *Set) Place(title string) { s.place = title }

// All are the settings, in order.
func (s *Set) All() []*Setting { return s.all }

// Then runs f in Finish, after all values are known and in range.
func (s *Set) Then(f func() error) { s.after = append(s.after, f) }

// Finish reports the first value out of its range, runs what Then was given, and reports a
// value that was changed to no effect.
func (s *Set) Finish() error {
	for _, one := range s.all {
		if one.check == nil {
			continue
		}
		if err := one.check(); err != nil {
			return err
		}
	}
	for _, f := range s.after {
		if err := f(); err != nil {
			return err
		}
	}
	return s.checkIdle()
}

// Text is a setting that the method reads itself: show writes its value, read
// takes it, and reports what it wants instead.
func (s *Set) Text(name, help string, show func() string, read func(text string) error) {
	var wrong error
	s.add(Setting{Name: name, Help: help, kind: "string", show: show,
		read:  func(text string) error { wrong = read(text); return nil },
		check: func() error { return wrong }})
}

func (s *Set) add(one Setting) {
	one.Place, one.usual = s.place, one.show()
	s.all = append(s.all, &one)
}

// Int is a whole number from least to most.
func (s *Set) Int(name string, p *int, least, most int, help string) {
	s.add(Setting{Name: name, Help: help, kind: "int",
		show:  func() string { return strconv.Itoa(*p) },
		read:  func(text string) (err error) { *p, err = strconv.Atoi(text); return err },
		check: func() error { return InRange(name, *p, least, most) }})
}

// Range is an interval of numbers that are finite in float32.
type Range struct {
	ok   func(float64) bool
	want string // completes "want --lr …"
}

var (
	Positive = Range{func(x float64) bool { return x > 0 }, "above 0"}
	AtLeast0 = Range{func(x float64) bool { return x >= 0 }, "of at least 0"}
	// Moment is [0, 1): how much a running mean keeps.
	Moment = Range{func(x float64) bool { return x >= 0 && x < 1 }, "of at least 0 and below 1"}
	// Factor is (0, 1].
	Factor = Range{func(x float64) bool { return x > 0 && x <= 1 }, "above 0 and at most 1"}
)

// Check says that x, the value of name, is out of the range.
func (r Range) Check(name string, x float64) error {
	if r.ok(x) && math.Abs(x) <= math.MaxFloat32 {
		return nil
	}
	return fmt.Errorf("want --%s %s, and finite in float32, got %v", name, r.want, x)
}

// Float is a number in r.
func (s *Set) Float(name string, p *float64, r Range, help string) {
	s.add(Setting{Name: name, Help: help, kind: "float64",
		show:  func() string { return strconv.FormatFloat(*p, 'g', -1, 64) },
		read:  func(text string) (err error) { *p, err = strconv.ParseFloat(text, 64); return err },
		check: func() error { return r.Check(name, *p) }})
}

// Bool is a switch.
func (s *Set) Bool(name string, p *bool, help string) {
	s.add(Setting{Name: name, Help: help, kind: "bool",
		show: func() string { return strconv.FormatBool(*p) },
		read: func(text string) (err error) { *p, err = strconv.ParseBool(text); return err }})
}

// Word is one of some words.
func Word[T ~string](s *Set, name string, p *T, words []T, help string) {
	s.add(Setting{Name: name, Help: help, kind: "string",
		show:  func() string { return string(*p) },
		read:  func(text string) error { *p = T(text); return nil },
		check: func() error { return OneOf(name, *p, words) }})
}

// OneOf says that got, the value of name, is none of its words.
func OneOf[T ~string](name string, got T, words []T) error {
	if slices.Contains(words, got) {
		return nil
	}
	return fmt.Errorf("unknown --%s %q: want %s", name, string(got), Choices(words))
}

// Choices is a list of words for a sentence: a, b or c.
func Choices[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
