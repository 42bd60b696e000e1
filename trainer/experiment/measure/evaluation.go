package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ReadEvaluation reads what evaluate --json printed: one object.
func ReadEvaluation(text []byte) (map[string]any, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("want one JSON object: %w", err)
	}
	if fields == nil {
		return nil, errors.New("want one JSON object, got null")
	}
	return fields, nil
}

// Diverged says whether evaluate --json printed, in place of a report, that numbers of the
// model are not finite.
func Diverged(text []byte) bool {
	fields, err := ReadEvaluation(text)
	_, diverged := fields["diverged"]
	return err == nil && diverged
}

// evaluated takes a field of the evaluation: names with points between them go
// into objects, and into a list of objects to the one that holds that name as a
// text, as in energies.data.mean.
func evaluated(path string) func(Evidence) (float64, error) {
	return func(e Evidence) (float64, error) {
		if e.Evaluation == nil {
			return 0, errors.New("evaluate was not run")
		}
		var v any = e.Evaluation
		for name := range strings.SplitSeq(path, ".") {
			if v = step(v, name); v == nil {
				return 0, fmt.Errorf("evaluate --json has no field %s (it has %s)", path, strings.Join(slices.Sorted(maps.Keys(e.Evaluation)), ", "))
			}
		}
		return number(v, path)
	}
}

// Quality is the field of the evaluation that compares samples with data, beside
// the floor and sets that are known to be bad; nil if that was not asked for.
func (e Evidence) Quality() any { return e.Evaluation["quality"] }

// fromData is the log-likelihood with the normaliser that chains find which begin at
// the data; the model has none where it is enumerated, and the two are one.
func fromData(e Evidence) (float64, error) {
	ll, err := evaluated("ll")(e)
	if err != nil {
		return 0, err
	}
	z, err := evaluated("log_z.value")(e)
	if err != nil {
		return 0, err
	}
	if fields, ok := e.Evaluation["log_z"].(map[string]any); ok && fields["back"] == nil {
		return ll, nil
	}
	back, err := evaluated("log_z.back.value")(e)
	return ll + z - back, err
}

// compared takes the samples' number of a row of the comparison, floor that of real
// samples, and control that of another set.
func compared(row string) func(Evidence) (float64, error) {
	return evaluated("quality.rows." + row + ".samples")
}

func floor(row string) func(Evidence) (float64, error) {
	return evaluated("quality.rows." + row + ".floor")
}

func control(row, set string) func(Evidence) (float64, error) {
	return evaluated("quality.rows." + row + ".controls." + set)
}

// atLast takes a field of the evaluation of the last step, which may be the one
// that was chosen.
func atLast(path string) func(Evidence) (float64, error) {
	take := evaluated(path)
	return func(e Evidence) (float64, error) {
		if e.Last != nil {
			e.Evaluation = e.Last
		}
		return take(e)
	}
}

// step goes into v by a name; nil if there is nothing.
func step(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		for _, element := range v {
			object, ok := element.(map[string]any)
			if !ok {
				continue
			}
			for _, field := range object {
				if field == name {
					return object
				}
			}
		}
	}
	return nil
}

// number is v as a number: 1 for what is true, 0 for what is not. What JSON cannot say
// stands there as a text: "NaN".
func number(v any, path string) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return f, nil
		}
	}
	return 0, fmt.Errorf("field %s of evaluate --json is %v: want a number", path, v)
}

// percent takes a field that is a fraction.
func percent(path string) func(Evidence) (float64, error) {
	take := evaluated(path)
	return func(e Evidence) (float64, error) {
		v, err := take(e)
		return 100 * v, err
	}
}
