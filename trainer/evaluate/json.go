package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"ebtrain/trainer/run/rundir"
)

// appendJSON appends v as encoding/json writes it, but for numbers that JSON has not: they
// stand as "NaN", "Inf" and "-Inf", as they do in metrics.jsonl, so that a single one does
// not take all others with it.
func appendJSON(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return appendJSON(b, v.Elem())
		}
	case reflect.Struct:
		return appendFields(b, v)
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		b = append(b, '[')
		for i := range v.Len() {
			var err error
			if b, err = appendJSON(comma(b, i), v.Index(i)); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case reflect.Map:
		if v.IsNil() {
			break
		}
		b = append(b, '{')
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for i, key := range keys {
			var err error
			if b, err = appendNamed(comma(b, i), key.String(), v.MapIndex(key)); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case reflect.Float64:
		text, err := json.Marshal(rundir.Number(v.Float()))
		return append(b, text...), err
	}
	text, err := json.Marshal(v.Interface())
	return append(b, text...), err
}

// appendFields appends a struct, by its tags.
func appendFields(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '{')
	n := 0
	for i := range v.NumField() {
		name, option, tagged := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || tagged && option == "omitempty" && empty(v.Field(i)) {
			continue
		}
		var err error
		if b, err = appendNamed(comma(b, n), name, v.Field(i)); err != nil {
			return nil, err
		}
		n++
	}
	return append(b, '}'), nil
}

// appendNamed appends a member of an object.
func appendNamed(b []byte, name string, v reflect.Value) ([]byte, error) {
	text, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return appendJSON(append(append(b, text...), ':'), v)
}

// empty says whether v is what omitempty leaves out.
func empty(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// comma stands before all but the first.
func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
