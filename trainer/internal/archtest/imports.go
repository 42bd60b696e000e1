package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// arrows says what a room may import besides itself, as folders of the
// module. Nothing below knows what is above it.
var arrows = map[string]arrow{
	"collective": {nil, "it is the ground: ranks and collectives know no one who uses them"},
	"ddp":        {[]string{"collective"}, "programs know collectives, not what is trained, on which data, or who started it"},
	"data":       {[]string{"ddp/philox"}, "samples come in order for whoever asks; only the numbering of random draws is shared"},
	// How much memory there is, is the machine's and no matter of starting.
	"trainer": {[]string{"ddp", "data", "collective", "launch/memory"}, "what is trained does not know how it was started; mains alone meet the launcher"},
	"launch":  {nil, "it supervises any program: it knows processes and environment only"},
}

type arrow struct {
	to  []string
	why string
}

// mainArrows are what commands may import besides what their room may: those
// of every room under "", those of one room under its name.
var mainArrows = map[string][]string{
	"":        {"launch/cliflag", "launch/exitcode", "launch/plainlog", "launch/progressbar"},
	"trainer": {"launch/rendezvous", "launch/env", "launch/task", "launch/variable"},
	// collbench measures the group that a launcher has made. A command stands above
	// all rooms, whichever folder it is in: it joins as those of trainer do.
	"collective": {"trainer/world", "launch/env", "launch/task", "launch/netns", "data/atomicfile"},
}

// wholePaths are tests that start the programs themselves, all rooms' at once, and what
// they may import besides: where the programs run.
var wholePaths = map[string]string{"trainer/internal/e2e": "launch/netns"}

// mainParts are packages that mains share and that count as parts of them: they
// may import what a main may, and only mains import them.
var mainParts = []string{"trainer/world", "trainer/chosen", "trainer/computed"}

// methods holds a folder for each training method; they never meet.
const methods = "trainer/method/"

// kernels are the rooms of the CPU backend, and which of their siblings each may
// import. They come together in the backend alone.
var kernels = map[string][]string{
	"ddp/exec/cpu/array":     nil,
	"ddp/exec/cpu/threads":   nil,
	"ddp/exec/cpu/pointwise": {"ddp/exec/cpu/array", "ddp/exec/cpu/threads"},
	"ddp/exec/cpu/moves":     {"ddp/exec/cpu/array", "ddp/exec/cpu/threads"},
	"ddp/exec/cpu/linalg":    {"ddp/exec/cpu/threads"},
}

// cgoPackages are the leaf packages in which C is called.
var cgoPackages = []string{"collective/cuda", "collective/cuda/cudatest", "collective/nccl", "ddp/exec/cpu/linalg/dnnl", "ddp/exec/cuda", "ddp/exec/cuda/cublaslt", "ddp/exec/cuda/cudnn"}

// checkImports checks all imports of a file; main says whether its folder
// holds a command.
func checkImports(f *file, main bool) []Violation {
	main = main || inAny(f.path, mainParts)
	var out []Violation
	for _, i := range f.imports {
		for _, rule := range []func(*file, string, bool) string{roomRule, partRule, siblingRule, pflagRule, gorgoniaRule, cgoRule} {
			if text := rule(f, i.path, main); text != "" {
				out = append(out, Violation{f.path, i.line, text})
			}
		}
	}
	return out
}

// roomRule: arrows between rooms go down.
func roomRule(f *file, path string, main bool) string {
	target, ok := strings.CutPrefix(path, Module+"/")
	if !ok || roomOf(target+"/") == f.room() {
		return ""
	}
	a, known := arrows[f.room()]
	if !known { // the file is in no room, which is a violation of its own
		return ""
	}
	may := a.to
	if main {
		may = slices.Concat(may, mainArrows[""], mainArrows[f.room()])
	}
	if inAny(target, may) || target == wholePaths[f.dir()] {
		return ""
	}
	allowed := "nothing outside its room"
	if len(may) > 0 {
		allowed = "outside its room only " + strings.Join(may, ", ")
	}
	return fmt.Sprintf("imports %s, but %s may import %s: %s", target, f.room(), allowed, a.why)
}

// partRule: what only mains may import reaches libraries by no detour.
func partRule(f *file, path string, main bool) string {
	target, ok := strings.CutPrefix(path, Module+"/")
	if !ok || main || !inAny(target, mainParts) {
		return ""
	}
	return fmt.Sprintf("imports %s, which is a part of the mains: it knows flags and the launcher, and a library must not, not even by a detour", target)
}

// siblingRule: methods share parts, never each other; nor do kernels.
func siblingRule(f *file, path string, _ bool) string {
	target, ok := strings.CutPrefix(path, Module+"/")
	if !ok {
		return ""
	}
	if from, to := methodOf(f.path), methodOf(target); from != "" && to != "" && from != to {
		return fmt.Sprintf("%s imports %s: methods never import each other, so that each can be read, changed and removed alone; move what both need to a package of its own", from, to)
	}
	for from, may := range kernels {
		for to := range kernels {
			if from != to && inside(f.path, from) && inside(target, to) && !slices.Contains(may, to) {
				return fmt.Sprintf("%s imports %s: kernels of one kind do not know those of another; what both need is in array or threads", from, to)
			}
		}
	}
	return ""
}

// methodOf is the folder of the method that a file or package belongs to, "" if
// it is none's.
func methodOf(path string) string {
	rest, ok := strings.CutPrefix(path, methods)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return methods + name
}

// methodList is the file that lists the training methods, a line each.
const methodList = "trainer/settings/methods.go"

// checkMethods: every method is in the list, which is all that programs know.
func checkMethods(files []*file) []Violation {
	listed, packages := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if !f.test && f.dir() == methodOf(f.path) {
			packages[f.dir()] = true
		}
		if f.path != methodList {
			continue
		}
		for _, i := range f.imports {
			listed[strings.TrimPrefix(i.path, Module+"/")] = true
		}
	}
	if len(listed) == 0 { // not this module's tree
		return nil
	}
	var out []Violation
	for dir := range packages {
		if !listed[dir] {
			out = append(out, Violation{dir, 0, "a method that is not in " + methodList + ": no program can train it; give it its line there"})
		}
	}
	return out
}

// pflagRule: libraries have Config structs, commands have flags.
func pflagRule(f *file, path string, main bool) string {
	if path != "github.com/spf13/pflag" || main || inside(f.path, "launch/cliflag") {
		return ""
	}
	return "imports pflag: flags are parsed in mains (and launch/cliflag) only; a library has a Config struct, which tests and other programs can fill"
}

// gorgoniaRule: one package knows gorgonia, none knows its CUDA part by default.
func gorgoniaRule(f *file, path string, _ bool) string {
	switch {
	case path == "gorgonia.org/cu" || strings.HasPrefix(path, "gorgonia.org/cu/"):
		if f.needs("gorgoniacu") {
			return ""
		}
		return "imports gorgonia.org/cu in the default build: its init ends the process where there is no GPU; put it under //go:build gorgoniacu"
	case strings.HasPrefix(path, "gorgonia.org/") && !inside(f.path, "ddp/gorgoniaddp"):
		return "imports " + path + ": only ddp/gorgoniaddp may; the engine differentiates by itself, because gorgonia's repeated differentiation is wrong"
	}
	return ""
}

// cgoRule: C is called from leaf packages only.
func cgoRule(f *file, path string, _ bool) string {
	if path != "C" {
		return ""
	}
	for _, p := range cgoPackages {
		if f.dir() == p {
			return ""
		}
	}
	return fmt.Sprintf("uses cgo: C is called only in the leaf packages %s, so that C types never leave them and everything else builds without a C compiler", strings.Join(cgoPackages, ", "))
}

// inside says whether path is the folder dir or below it.
func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func inAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if inside(path, d) {
			return true
		}
	}
	return false
}
