package archtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTree checks this module.
func TestTree(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	violations, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// TestExceptionsAreUsed: what mains may import besides their room's arrows, one
// of them or their parts does.
func TestExceptionsAreUsed(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	mains := mainFolders(files)
	used := map[string]bool{}
	for _, f := range files {
		if mains[f.dir()] || inAny(f.path, mainParts) {
			for _, i := range f.imports {
				used[f.room()+" "+i.path], used[" "+i.path] = true, true
			}
		}
	}
	for room, targets := range mainArrows {
		for _, target := range targets {
			if !used[room+" "+Module+"/"+target] {
				t.Errorf("no main of %q imports %s: strike the exception", room, target)
			}
		}
	}
}

// moduleRoot is the nearest folder above with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above")
		}
		dir = filepath.Dir(dir)
	}
}

// tree makes a tree of files: path, content.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// lib is a documented package that imports some others.
func lib(name string, imports ...string) string {
	s := "// Package " + name + " is for this test.\npackage " + name + "\n"
	for _, i := range imports {
		s += "import _ \"" + i + "\"\n"
	}
	return s
}

func command(imports ...string) string {
	return strings.Replace(lib("main", imports...), "Package main is", "Demo runs", 1)
}

func TestRules(t *testing.T) {
	const mark = "TO" + "DO"
	tests := []struct {
		name string
		path string
		text string
		want []string // parts of the one violation; none: allowed
	}{
		// arrows
		{"ddp to collective", "ddp/graph/a.go", lib("graph", "ebtrain/collective"), nil},
		{"ddp to data", "ddp/graph/a.go", lib("graph", "ebtrain/data/shard"), []string{"ddp/graph/a.go:3:", "imports data/shard", "ddp may import outside its room only collective"}},
		{"ddp to trainer", "ddp/graph/a.go", lib("graph", "ebtrain/trainer/model/nn"), []string{"imports trainer/model/nn"}},
		{"collective to ddp", "collective/a.go", lib("collective", "ebtrain/ddp"), []string{"collective may import nothing outside its room"}},
		{"collective to itself", "collective/host/a.go", lib("host", "ebtrain/collective"), nil},
		{"data to philox", "data/shard/a.go", lib("shard", "ebtrain/ddp/philox"), nil},
		{"data to graph", "data/shard/a.go", lib("shard", "ebtrain/ddp/graph"), []string{"imports ddp/graph", "only ddp/philox"}},
		{"data to a longer name", "data/shard/a.go", lib("shard", "ebtrain/ddp/philoxx"), []string{"imports ddp/philoxx"}},
		{"launch to collective", "launch/member/a.go", lib("member", "ebtrain/collective"), []string{"imports collective", "launch may import nothing outside its room"}},
		{"launch main to trainer", "launch/ddplaunch/main.go", command("ebtrain/trainer"), []string{"imports trainer"}},
		{"trainer to all below", "trainer/a.go", lib("trainer", "ebtrain/ddp/exec", "ebtrain/data", "ebtrain/collective/host"), nil},
		{"trainer library to launch", "trainer/a.go", lib("trainer", "ebtrain/launch/env"), []string{"imports launch/env", "mains alone meet the launcher"}},
		{"tests of whole paths to hosts", "trainer/internal/e2e/a_test.go", lib("e2e", "ebtrain/launch/netns"), nil},
		{"tests of whole paths to the launcher", "trainer/internal/e2e/a_test.go", lib("e2e", "ebtrain/launch/member"), []string{"imports launch/member"}},
		{"trainer main to rendezvous", "trainer/train/main.go", command("ebtrain/launch/rendezvous", "ebtrain/launch/env", "ebtrain/launch/cliflag"), nil},
		{"trainer main to supervisor", "trainer/train/main.go", command("ebtrain/launch/supervise"), []string{"imports launch/supervise"}},
		{"part of mains", "trainer/world/a.go", lib("world", "ebtrain/launch/env", "github.com/spf13/pflag"), nil},
		{"main to its part", "trainer/train/main.go", command("ebtrain/trainer/world"), nil},
		{"part of mains to supervisor", "trainer/world/a.go", lib("world", "ebtrain/launch/supervise"), []string{"imports launch/supervise"}},
		{"library to a part of mains", "trainer/run/loop/a.go", lib("loop", "ebtrain/trainer/world"), []string{"imports trainer/world", "detour"}},
		{"collective main to the mains' part", "collective/collbench/main.go", command("ebtrain/trainer/world", "ebtrain/launch/env"), nil},
		{"collective main to the trainer", "collective/collbench/main.go", command("ebtrain/trainer/run/loop"), []string{"imports trainer/run/loop"}},
		{"data main to cliflag", "data/mkshards/main.go", command("ebtrain/launch/cliflag"), nil},
		{"data main to rendezvous", "data/mkshards/main.go", command("ebtrain/launch/rendezvous"), []string{"imports launch/rendezvous"}},
		{"data library to cliflag", "data/shard/a.go", lib("shard", "ebtrain/launch/cliflag"), []string{"imports launch/cliflag"}},
		{"a test is bound too", "ddp/graph/a_test.go", lib("graph_test", "ebtrain/trainer/model/nn"), []string{"imports trainer/model/nn"}},
		{"under any tag", "ddp/graph/a.go", "//go:build never\n\n" + lib("graph", "ebtrain/trainer/model/nn"), []string{"imports trainer/model/nn"}},
		// algorithms
		{"siblings", "trainer/method/bism/a.go", lib("bism", "ebtrain/trainer/method/bidvl"), []string{"trainer/method/bism imports trainer/method/bidvl", "never import each other"}},
		{"siblings, below", "trainer/method/vages/x/a.go", lib("x", "ebtrain/trainer/method/lebm/y"), []string{"trainer/method/vages imports trainer/method/lebm"}},
		{"an algorithm and its parts", "trainer/method/bism/a.go", lib("bism", "ebtrain/trainer/method/bism/x", "ebtrain/trainer/model/nn"), nil},
		// kernels
		{"kernels of two kinds", "ddp/exec/cpu/moves/a.go", lib("moves", "ebtrain/ddp/exec/cpu/pointwise/vec"), []string{"ddp/exec/cpu/moves imports ddp/exec/cpu/pointwise"}},
		{"what kernels share", "ddp/exec/cpu/moves/a.go", lib("moves", "ebtrain/ddp/exec/cpu/array"), nil},
		{"what kernels share, upwards", "ddp/exec/cpu/array/a.go", lib("array", "ebtrain/ddp/exec/cpu/moves"), []string{"ddp/exec/cpu/array imports ddp/exec/cpu/moves"}},
		// packages from elsewhere
		{"pflag in a main", "trainer/train/main.go", command("github.com/spf13/pflag"), nil},
		{"pflag in cliflag", "launch/cliflag/a.go", lib("cliflag", "github.com/spf13/pflag"), nil},
		{"pflag in a library", "trainer/a.go", lib("trainer", "github.com/spf13/pflag"), []string{"imports pflag", "Config struct"}},
		{"gorgonia at home", "ddp/gorgoniaddp/a.go", lib("gorgoniaddp", "gorgonia.org/gorgonia", "gorgonia.org/tensor"), nil},
		{"gorgonia elsewhere", "ddp/graph/a.go", lib("graph", "gorgonia.org/tensor"), []string{"imports gorgonia.org/tensor", "only ddp/gorgoniaddp"}},
		{"cu by default", "ddp/gorgoniaddp/a.go", lib("gorgoniaddp", "gorgonia.org/cu"), []string{"default build"}},
		{"cu under its tag", "ddp/gorgoniaddp/a.go", "//go:build linux && gorgoniacu\n\n" + lib("gorgoniaddp", "gorgonia.org/cu/blas"), nil},
		{"cu under a tag that does not help", "ddp/gorgoniaddp/a.go", "//go:build gorgoniacu || !slow\n\n" + lib("gorgoniaddp", "gorgonia.org/cu"), []string{"default build"}},
		{"cgo at home", "collective/nccl/a.go", lib("nccl", "C"), nil},
		{"cgo elsewhere", "collective/host/a.go", lib("host", "C"), []string{"uses cgo", "leaf packages"}},
		// text
		{"tag cuda", "ddp/exec/a.go", "//go:build linux && !cuda\n\n" + lib("exec"), []string{"build tag cuda"}},
		{"tag near cuda", "ddp/exec/a.go", "//go:build cuda12\n\n" + lib("exec"), nil},
		{"unfinished", "ddp/a.go", lib("ddp") + "\n// " + mark + ": later\n", []string{"ddp/a.go:4: " + mark}},
		{"unfinished test", "ddp/a_test.go", lib("ddp") + "// FIX" + "ME\n", []string{"FIX" + "ME"}},
		{"a longer word", "ddp/a.go", lib("ddp") + "// " + mark + "S and XX" + "XXXX\n", nil},
		{"long", "ddp/a.go", lib("ddp") + strings.Repeat("\n", 499), []string{"501 lines, at most 500"}},
		{"not quite long", "ddp/a.go", lib("ddp") + strings.Repeat("\n", 498), nil},
		{"a long test", "ddp/a_test.go", lib("ddp") + strings.Repeat("\n", 999), nil},
		{"long and generated", "ddp/a.go", "// Code generated by x; DO NOT EDIT.\n\n" + lib("ddp") + strings.Repeat("\n", 999), nil},
		// packages
		{"no comment", "ddp/a.go", "package ddp\n", []string{"ddp: package ddp has no package comment"}},
		{"comment of another", "ddp/a.go", "// Package pdd is.\npackage ddp\n", []string{"no package comment"}},
		{"command without comment", "ddp/x/main.go", "package main\n", []string{"what the command does"}},
		{"a folder of tests", "ddp/x/a_test.go", "package x\n", nil},
		{"vague name", "ddp/common/a.go", lib("common"), []string{"ddp/common: a package called common"}},
		{"vague folder", "ddp/helpers/a.go", lib("fine"), []string{"called helpers"}},
		// house
		{"a sixth room", "pkg/a.go", lib("pkg"), []string{"pkg: a top-level folder", "five rooms"}},
		{"no room", "a.go", lib("ebtrain"), []string{"a.go: a Go file outside the rooms"}},
		{"dot-folder", ".ci/a.go", "package util\n", nil},
		{"testdata", "ddp/testdata/a.go", "package util\n", nil},
		{"generator", "ddp/_gen/a.go", "package util\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Check(tree(t, map[string]string{tt.path: tt.text}))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if len(got) != 0 {
					t.Errorf("violations %v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d violations %v, want one with %q", len(got), got, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(got[0].String(), part) {
					t.Errorf("violation %q does not have %q", got[0], part)
				}
			}
		})
	}
}

func TestIgnoredFoldersAndModules(t *testing.T) {
	root := tree(t, map[string]string{
		".gitignore":         "/runs/\n*.test\nshards/\n",
		"runs/a/config.json": "{}",
		"shards/x":           "",
		"ddp/tool/go.mod":    "module tool\n",
		"ddp/tool/a.go":      "package util\n",
	})
	got, err := Check(root)
	if err != nil || len(got) != 1 || got[0].Path != "shards" {
		t.Errorf("violations %v, %v; want shards alone", got, err)
	}
}

// One comment is enough for a package of several files; a command's tests may
// import what it may.
func TestFilesTogether(t *testing.T) {
	root := tree(t, map[string]string{
		"ddp/a.go":                   "package ddp\n",
		"ddp/b.go":                   lib("ddp"),
		"trainer/train/main.go":      command(),
		"trainer/train/main_test.go": "package main\nimport _ \"ebtrain/launch/env\"\nimport _ \"github.com/spf13/pflag\"\n",
	})
	if got, err := Check(root); err != nil || len(got) != 0 {
		t.Errorf("violations %v, %v; want none", got, err)
	}
}

// A method that the list has not is named.
func TestMethodsAreListed(t *testing.T) {
	root := tree(t, map[string]string{
		"trainer/settings/methods.go":    lib("settings", "ebtrain/trainer/method/a", "ebtrain/trainer/method/c"),
		"trainer/method/a/a.go":          lib("a"),
		"trainer/method/a/inner/i.go":    lib("inner"),
		"trainer/method/b/b.go":          lib("b"),
		"trainer/method/c/c.go":          lib("c"),
		"trainer/method/notes/a_test.go": lib("notes"),
	})
	got, err := Check(root)
	if err != nil || len(got) != 1 || got[0].Path != "trainer/method/b" || !strings.Contains(got[0].Text, "not in trainer/settings/methods.go") {
		t.Errorf("violations %v, %v; want that of b alone", got, err)
	}
}

func TestSortedAndBroken(t *testing.T) {
	root := tree(t, map[string]string{"launch/b.go": "package util\n", "data/a.go": lib("data", "ebtrain/trainer", "ebtrain/launch")})
	got, err := Check(root)
	var paths []string
	for _, v := range got {
		paths = append(paths, v.Path)
	}
	if err != nil || !slices.Equal(paths, []string{"data/a.go", "data/a.go", "launch", "launch"}) {
		t.Errorf("violations %v, %v", got, err)
	}
	if _, err := Check(tree(t, map[string]string{"ddp/a.go": "not go"})); err == nil {
		t.Error("a file that is not Go gives no error")
	}
}
