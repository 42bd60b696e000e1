package algotest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
)

func settingsOf(c algo.Config) *setting.Set {
	s := new(setting.Set)
	c.Settings(s)
	return s
}

// goesRound: settings that are given their own text change nothing, and each can
// be found and understood.
func goesRound(f fitted) error {
	c, seen := f.config.Clone(), map[string]bool{}
	s := settingsOf(c)
	for _, one := range s.All() {
		if one.Name == "" || one.Help == "" || one.Place == "" || seen[one.Name] {
			return fmt.Errorf("--%s: want one setting of that name, with help and a place", one.Name)
		}
		seen[one.Name] = true
		if err := one.Set(one.String()); err != nil {
			return fmt.Errorf("--%s does not take its own text %q: %w", one.Name, one, err)
		}
	}
	if len(seen) == 0 {
		return errors.New("there are no settings")
	}
	if err := s.Finish(); err != nil {
		return err
	}
	if !reflect.DeepEqual(c, f.config) {
		return fmt.Errorf("%s became %s", text(f.config), text(c))
	}
	return nil
}

// hasRate: a user who is told to lower the learning rate is told of its flag.
func hasRate(f fitted) error {
	if !slices.ContainsFunc(settingsOf(f.config).All(), (*setting.Setting).Rate) {
		return errors.New("no setting is called lr, lr-… or …-lr: where a loss jumps, a user is told to lower what is called so")
	}
	return nil
}

// with is a clone of c with one setting, by its place among all, given a text.
// Its error is the user's.
func with(c algo.Config, i int, text string) (algo.Config, error) {
	d := c.Clone()
	s := settingsOf(d)
	return d, errors.Join(s.All()[i].Set(text), s.Finish())
}

// other is a text that the setting has not, of its kind; it may be out of range.
func other(one *setting.Setting) string {
	switch x, _ := strconv.ParseFloat(one.String(), 64); one.Type() {
	case "bool":
		return strconv.FormatBool(one.String() == "false")
	case "int":
		return strconv.Itoa(int(x) + 1)
	case "float64":
		if x != 0 {
			return fmt.Sprint(x / 2)
		}
	}
	return "0.5" // a number, or a word like any other
}

// arrive: each setting is in the JSON, of the config that it was given to alone.
func arrive(f fitted) error {
	before := text(f.config)
	for i, one := range settingsOf(f.config).All() {
		d, _ := with(f.config, i, other(one)) // which may not go with the others
		if text(d) == before {
			return fmt.Errorf("--%s %s changes nothing in %s", one.Name, other(one), before)
		}
		if text(f.config) != before {
			return fmt.Errorf("--%s of a clone changes the original to %s", one.Name, text(f.config))
		}
	}
	return nil
}

// refuses: a setting out of its range, or no such value, is an error that names
// it, in one line.
func refuses(f fitted) error {
	bad := map[string]string{"int": "-1", "float64": "NaN", "string": "no such word", "bool": "perhaps"}
	for i, one := range settingsOf(f.config).All() {
		_, err := with(f.config, i, bad[one.Type()])
		if err == nil {
			return fmt.Errorf("--%s takes %s", one.Name, bad[one.Type()])
		}
		if one.Type() == "bool" {
			continue // whoever reads it names the flag
		}
		if got := err.Error(); !strings.Contains(got, "--"+one.Name) || strings.Contains(got, "\n") {
			return fmt.Errorf("--%s %s: want one line that names it, got %q", one.Name, bad[one.Type()], got)
		}
	}
	return nil
}

// shares: whatever changes in a clone, or below it, the original stays.
func shares(f fitted) error {
	before, d := text(f.config), f.config.Clone()
	if text(d) != before {
		return fmt.Errorf("%s is cloned as %s", before, text(d))
	}
	if err := change(reflect.ValueOf(d)); err != nil {
		return err
	}
	if text(f.config) != before {
		return fmt.Errorf("with its clone, %s became %s", before, text(f.config))
	}
	if text(d) == before {
		return fmt.Errorf("%s has nothing that can change", before)
	}
	return nil
}

// change changes every exported number, word and switch that v leads to.
func change(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return change(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if err := change(field); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := change(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Bool:
		set(v, reflect.ValueOf(!v.Bool()))
	case reflect.Int, reflect.Int64:
		set(v, reflect.ValueOf(v.Int()+1))
	case reflect.Float64:
		set(v, reflect.ValueOf(v.Float()+1))
	case reflect.String:
		set(v, reflect.ValueOf(v.String()+"!"))
	default:
		return fmt.Errorf("this test cannot change a %v", v.Type())
	}
	return nil
}

func set(v, x reflect.Value) {
	if v.CanSet() {
		v.Set(x.Convert(v.Type()))
	}
}

// DeepOfAny gives a config of a preset of any shape a deep --model, of square pictures, and is
// what is wrong then: the data alone say whether it fits, and square pictures do.
func DeepOfAny(c algo.Config, model string) error {
	if err := Given(c, map[string]string{"model": model}); err != nil {
		return err
	}
	for want, s := range map[string]data.Schema{
		"takes pictures, not vectors":       {C: 1, H: 1, W: 2},
		"--model " + model + " takes 32x32": {C: 1, H: 28, W: 20},
	} {
		if got := fmt.Sprint(c.Fit(s)); !strings.Contains(got, want) {
			return fmt.Errorf("on %s: got %s, want %q", s, got, want)
		}
	}
	return errors.Join(c.Fit(data.Schema{C: 1, H: 32, W: 32}), c.Validate())
}

// Given gives a config some settings, as a user does; the error is the user's.
func Given(c algo.Config, texts map[string]string) error {
	s := settingsOf(c)
	for _, one := range s.All() {
		text, ok := texts[one.Name]
		if !ok {
			continue
		}
		if err := one.Set(text); err != nil {
			return err
		}
	}
	return s.Finish()
}
