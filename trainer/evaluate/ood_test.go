package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

func TestForeigners(t *testing.T) {
	got, err := foreigners([]string{"shards/a", "svhn=shards/b", "made=synth:seed=5,test=12"})
	want := []foreign{{"ood", "shards/a"}, {"svhn", "shards/b"}, {"made", "synth:seed=5,test=12"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := foreigners([]string{"synth:seed=5,test=12"}); err != nil || got[0] != (foreign{"ood", "synth:seed=5,test=12"}) {
		t.Errorf("a built-in data set: got %v, %v", got, err)
	}
	if got, err := foreigners([]string{"./a b=c", "one=ü x=y"}); err != nil || got[0] != (foreign{"ood", "./a b=c"}) || got[1] != (foreign{"one", "ü x=y"}) {
		t.Errorf("paths that hold a =: got %v, %v", got, err)
	}
	for said, want := range map[string]string{
		"":                `--ood "" names no data set: want one`,
		"svhn=":           `--ood "svhn=" names no data set: want one`,
		"=shards/a":       `and "" is before the =`,
		"svhn ü=shards/a": `--ood "svhn ü=shards/a": a name has letters A to Z and a to z, digits, points and hyphens, and "svhn ü" is before the =`,
	} {
		if got, err := foreigners([]string{said}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %s", said, got, err, want)
		}
	}
	for _, said := range [][]string{{"a", "b"}, {"noise=a"}, {"x=a", "x=b"}} {
		if _, err := foreigners(said); err == nil || !strings.Contains(err.Error(), "name each data set") {
			t.Errorf("%q: got error %v", said, err)
		}
	}
}

func TestForeignSplit(t *testing.T) {
	one := filepath.Join(t.TempDir(), "one")
	w, err := shard.Create(one, shard.Options{Schema: data.Schema{C: 1, H: 2, W: 2, DType: safetensors.U8}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "train", make([]byte, 4), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{"synth:test=3": "test", one: "train"} {
		if got, err := foreignSplit(foreign{"x", set}); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", set, got, err, want)
		}
	}
	if _, err := foreignSplit(foreign{"x", "nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere: no such data set") {
		t.Errorf("no data set: got error %v", err)
	}
}
