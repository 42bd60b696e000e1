package dataset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/data/density"
	"ebtrain/data/synth"
)

// Synth is the name of the built-in picture set. Settings may follow, as in
// "synth:size=64,train=1000,val=100,test=100,seed=3"; of pictures that are not
// square, size is rows x columns, as in "size=28x20".
const Synth = "synth"

// Names of the built-in sets of points. Settings may follow, as in
// "checkerboard:cols=2,train=60000,val=10000,test=10000,seed=3" and
// "gauss:dim=2,modes=8,radius=1,sd=0.1".
const (
	Checkerboard = "checkerboard"
	Gauss        = "gauss"
)

// made is a data set that is made on the fly: its settings, which begin with
// their usual values, and how a split is opened with them.
type made struct {
	settings map[string]func(text string) error
	splits   []string
	open     func(split string) (data.Source, error)
}

// builtins are the data sets that are made on the fly.
var builtins = map[string]func() made{Synth: madeSynth, Checkerboard: madeCheckerboard, Gauss: madeGauss}

// BuiltIn says whether name is that of a data set that is made on the fly,
// whatever its settings.
func BuiltIn(name string) bool {
	kind, _, _ := strings.Cut(name, ":")
	return builtins[kind] != nil
}

// parse reads the name of a built-in data set and its settings.
func parse(name string) (made, error) {
	m, err := read(name)
	return m, misnamed(name, err)
}

// misnamed is err, of a data set that is made on the fly, as a mistake in its name unless it
// is one in that of a split.
func misnamed(name string, err error) error {
	if _, known := errors.AsType[*data.MisnamedError](err); err == nil || known {
		return err
	}
	return &data.MisnamedError{Err: fmt.Errorf("data set %q: %w", name, err)}
}

// read is parse without the name in its sentences.
func read(name string) (made, error) {
	kind, rest, more := strings.Cut(name, ":")
	m := builtins[kind]()
	if !more {
		return m, nil
	}
	given := map[string]bool{}
	for setting := range strings.SplitSeq(rest, ",") {
		key, text, whole := strings.Cut(setting, "=")
		if !whole {
			return m, fmt.Errorf("setting %q, expected key=number", setting)
		}
		set, ok := m.settings[key]
		if !ok {
			return m, fmt.Errorf("unknown setting %q; known are %s", key, strings.Join(slices.Sorted(maps.Keys(m.settings)), ", "))
		}
		if given[key] {
			return m, fmt.Errorf("setting %q: %s is given twice, expected once", setting, key)
		}
		given[key] = true
		if err := set(text); err != nil {
			return m, fmt.Errorf("setting %q: %w", setting, err)
		}
	}
	return m, nil
}

// whole reads a whole number that is not negative into v.
func whole[T int | int64 | uint64](v *T) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return errors.New("expected a whole number from 0 to 2⁶³ − 1")
		}
		*v = T(n)
		return nil
	}
}

// number reads a number into v.
func number(v *float64) func(string) error {
	return func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("expected a number")
		}
		*v = x
		return nil
	}
}

func madeSynth() made {
	var c synth.Config
	return made{
		settings: map[string]func(string) error{
			"size": func(text string) error {
				size, err := data.ParseSize(text)
				if err == nil && (size.H == 0 || size.W == 0) { // which is the usual size in a Config
					err = errors.New("expected sides of 8 to 256")
				}
				c.Size, c.Cols = size.H, size.W
				return err
			},
			"seed": whole(&c.Seed), "train": whole(&c.Train), "val": whole(&c.Val), "test": whole(&c.Test),
		},
		splits: synth.Splits(),
		open:   func(split string) (data.Source, error) { return source(synth.Open(c, split)) },
	}
}

func madeCheckerboard() made {
	d := density.Checkerboard{Cols: 2}
	m := madeDensity(func() density.Density { return d })
	m.settings["cols"] = whole(&d.Cols)
	return m
}

func madeGauss() made {
	d := density.UsualGauss()
	m := madeDensity(func() density.Density { return d })
	m.settings["dim"], m.settings["modes"] = whole(&d.D), whole(&d.Modes)
	m.settings["radius"], m.settings["sd"] = number(&d.Radius), number(&d.SD)
	return m
}

// madeDensity are points of what of returns when all settings are read.
func madeDensity(of func() density.Density) made {
	c := density.Config{Train: density.Train, Val: density.Val, Test: density.Test}
	return made{
		settings: map[string]func(string) error{
			"seed": whole(&c.Seed), "train": whole(&c.Train), "val": whole(&c.Val), "test": whole(&c.Test),
		},
		splits: density.Splits(),
		open: func(split string) (data.Source, error) {
			c.Density = of()
			return source(density.Open(c, split))
		},
	}
}
