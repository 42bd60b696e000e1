package main

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/settings"
)

// testCase is a small configuration of a method, and what it is fed.
type testCase struct {
	Name   string         `json:"name"`
	Preset string         `json:"preset"`
	Over   map[string]any `json:"over"` // settings that differ from the preset's
	Batch  int            `json:"batch"`
	Steps  int            `json:"steps"`
	Epoch  int            `json:"epoch"`
	Graphs bool           `json:"graphs"` // write those of evaluation and the samplers, too

	// Of sentences, else absent: [Batch, Length] word numbers, and how many of each row count.
	Length  int     `json:"length"`
	Tokens  []int32 `json:"tokens"`
	Lengths []int32 `json:"lengths"`
}

//go:embed cases.json
var casesJSON []byte

// choose returns the cases of these names, all where there are none.
func choose(names []string) ([]testCase, error) {
	var all []testCase
	if err := json.Unmarshal(casesJSON, &all); err != nil {
		return nil, fmt.Errorf("cases.json: %w", err)
	}
	if len(names) == 0 {
		return all, nil
	}
	known := map[string]testCase{}
	for _, k := range all {
		known[k.Name] = k
	}
	var out []testCase
	for _, n := range names {
		k, ok := known[n]
		if !ok {
			return nil, cliflag.Usage("unknown case %q in --cases: crosscheck --list shows them", n)
		}
		out = append(out, k)
	}
	return out, nil
}

// unit is a case as it is built.
type unit struct {
	testCase
	method string
	config json.RawMessage
	model  algo.Model
	specs  []nn.Variable
}

// build makes the case's model: the preset with what differs written over it.
func (k testCase) build() (*unit, error) {
	m, err := settings.MethodOf(k.Preset)
	if err != nil {
		return nil, err
	}
	p, err := m.Preset(k.Preset)
	if err != nil {
		return nil, err
	}
	raw, err := over(p.Config, k.Over)
	if err != nil {
		return nil, err
	}
	cfg, err := m.Decode(raw)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	u := &unit{testCase: k, method: m.Name, config: raw, model: cfg.Model()}
	_, u.specs, err = algo.StepOf(u.model, k.Length, 1, k.Batch)
	return u, err
}

// over is cfg as JSON with some settings replaced.
func over(cfg algo.Config, with map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	merge(all, with)
	return json.Marshal(all)
}

// merge writes b over a, object by object.
func merge(a, b map[string]any) {
	for k, v := range b {
		have, nested := a[k].(map[string]any)
		if sub, ok := v.(map[string]any); ok && nested {
			merge(have, sub)
		} else {
			a[k] = v
		}
	}
}
