// Package dataset opens a data set by the name a user gives: the directory of
// shards that mkshards made, or "synth", the built-in pictures. It keeps no
// state.
package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/data/shard"
	"ebtrain/data/synth"
)

// Synth is the name of the built-in picture set. Settings may follow, as in
// "synth:size=64,train=1000,val=100,test=100,seed=3".
const Synth = "synth"

// Open opens a split ("train", "val", "test", …) of the data set called name.
// Nothing needs closing. A directory that happens to be called synth is
// reached as "./synth".
func Open(name, split string) (data.Source, error) {
	c, ok, err := parseSynth(name)
	if err != nil {
		return nil, err
	}
	if ok {
		return source(synth.Open(c, split))
	}
	if name == "" {
		return nil, fmt.Errorf("no data set named: give the directory of one, or %q for the built-in pictures", Synth)
	}
	return source(shard.Open(name, split))
}

// source keeps a nil pointer from becoming a Source that is not nil.
func source[S data.Source](s S, err error) (data.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Splits lists the splits of the data set called name, sorted.
func Splits(name string) ([]string, error) {
	if _, ok, err := parseSynth(name); err != nil || ok {
		return slices.Sorted(slices.Values(synth.Splits())), err
	}
	x, err := shard.ReadIndex(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(x.Splits)), nil
}

// parseSynth reads "synth" and its settings; false for another name.
func parseSynth(name string) (synth.Config, bool, error) {
	var c synth.Config
	rest, ok := strings.CutPrefix(name, Synth)
	if !ok || rest != "" && rest[0] != ':' {
		return c, false, nil
	}
	if rest == "" {
		return c, true, nil
	}
	for setting := range strings.SplitSeq(rest[1:], ",") {
		key, text, _ := strings.Cut(setting, "=")
		v, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return c, false, fmt.Errorf("data set %q: setting %q, expected key=number", name, setting)
		}
		switch key {
		case "size":
			c.Size = int(v)
		case "seed":
			c.Seed = v
		case "train":
			c.Train = int64(v)
		case "val":
			c.Val = int64(v)
		case "test":
			c.Test = int64(v)
		default:
			return c, false, fmt.Errorf("data set %q: unknown setting %q; known are size, seed, train, val, test", name, key)
		}
	}
	return c, true, nil
}
