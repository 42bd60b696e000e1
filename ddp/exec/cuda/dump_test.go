package cuda

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestDump holds the text of a program, and how the device does it, to a file.
func TestDump(t *testing.T) {
	cudatest.Use(t)
	b := open(t, Config{Plain: true, Lanes: 2})
	v := b.NewVars()
	if err := v.Set("w", exec.NewTensor(graph.T(graph.F32, 4, 3, 3, 3))); err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(scene(), exec.Options{Name: "scene", Vars: v})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := p.Dump(&got); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	const file = "testdata/scene.txt"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the dump differs from %s (-update writes it anew):\n%s", file, got.Bytes())
	}
}

// TestVariablesLie checks that what users set and get does not depend on how variables
// lie on the device.
func TestVariablesLie(t *testing.T) {
	cudatest.Use(t)
	b := open(t, Config{Plain: true})
	v := b.NewVars().(*variables)
	w := exec.NewTensor(graph.T(graph.F32, 4, 3, 3, 3))
	for i := range w.F32() {
		w.F32()[i] = float32(i)
	}
	same := func(when string) {
		t.Helper()
		got, err := v.Get("w")
		if err != nil {
			t.Fatal(err)
		}
		if got.Type != w.Type || !bytes.Equal(got.Bytes(), w.Bytes()) {
			t.Errorf("%s: another array", when)
		}
	}
	if err := v.Set("w", w); err != nil {
		t.Fatal(err)
	}
	same("before a program")
	p, err := b.Compile(scene(), exec.Options{Name: "scene", Vars: v})
	if err != nil {
		t.Fatal(err)
	}
	if last, fixed := v.order("w"); !last || !fixed {
		t.Errorf("weights lie channels-last: %v, fixed: %v", last, fixed)
	}
	same("in a program")
	w.F32()[5] = -1
	if err := v.Set("w", w); err != nil {
		t.Fatal(err)
	}
	same("set anew")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
