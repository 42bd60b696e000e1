package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/cuda/kernel/kerneltest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/settings"
	bench "ebtrain/trainer/stepbench/workload"
)

var (
	stepKernels = flag.String("kernels.steps", "conv32", "the steps whose kernels TestKernels compiles: some of conv32, conv64, resnet32, resnet128, conv-sm, grbm-bidsm, and methods, or all")
	stepArch    = flag.String("kernels.arch", "sm_90", "what TestKernels compiles for")
	stepTable   = flag.Bool("kernels.table", false, "TestKernels logs what each kernel takes")
)

// TestKernels compiles the kernels of training steps by a real NVRTC, in f32 and with
// bfloat16 images, and looks at what that makes of them:
//
//	EBTRAIN_TEST_NVRTC=1 go test -run TestKernels -v ./trainer/gpucheck -kernels.steps all -kernels.table
func TestKernels(t *testing.T) {
	version := cudatest.NeedCompiler(t)
	known := map[string]*built{}
	for _, s := range stepsFor(t, *stepKernels) {
		g, err := s.make()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		used := map[string]*built{}
		for _, bf16 := range []bool{false, true} {
			for entry, source := range textsOf(t, g, bf16) {
				if known[entry] == nil {
					known[entry] = &built{entry: entry, source: source}
				}
				used[entry] = known[entry]
			}
		}
		took := buildAll(t, slices.Collect(maps.Values(used)))
		logUsage(t, fmt.Sprintf("NVRTC %s, %s, %s", version, *stepArch, s.name), slices.Collect(maps.Values(used)), took)
	}
}

// built is a kernel, compiled.
type built struct {
	entry, source string
	usage         driver.Usage
	done          bool
}

// mostSpilled is how many bytes a thread may leave in local memory: numbers that wait around a
// loop cost nothing.
const mostSpilled = 24

// buildAll compiles what is not yet, and says how long that took, of how many.
func buildAll(t *testing.T, list []*built) string {
	list = slices.DeleteFunc(list, func(k *built) bool { return k.done })
	began := time.Now()
	var wg sync.WaitGroup
	for _, k := range list {
		k.done = true
		wg.Go(func() {
			tr, err := driver.Translate(*stepArch, k.entry, k.source, driver.CompileOptions{Options: kernel.Options()})
			if err != nil {
				t.Error(err)
				return
			}
			k.usage = tr.Usage()[k.entry]
			text := kerneltest.Text{Entry: k.entry, Source: k.source, Block: kernel.Block}
			for _, f := range text.Faults(tr) {
				t.Errorf("%s: %s", k.entry, f)
			}
			for _, f := range text.Scattered(tr) {
				t.Errorf("%s: %s moves its elements one by one", k.entry, f)
			}
			if k.usage.SpillStores > mostSpilled {
				t.Errorf("%s: %d bytes of registers are spilled", k.entry, k.usage.SpillStores)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf("%d new in %.1f s", len(list), time.Since(began).Seconds())
}

// logUsage logs what kernels take: how many have how many blocks on a multiprocessor, and
// those that have fewest.
func logUsage(t *testing.T, title string, list []*built, took string) {
	slices.SortFunc(list, func(a, b *built) int {
		return cmp.Or(cmp.Compare(b.usage.Registers, a.usage.Registers), cmp.Compare(a.entry, b.entry))
	})
	blocks := map[int]int{}
	stack := 0
	var table strings.Builder
	for _, k := range list {
		n := kerneltest.Blocks(k.usage, kernel.Block)
		blocks[n]++
		if k.usage.Stack > 0 {
			stack++
		}
		if *stepTable {
			fmt.Fprintf(&table, "\n%-34s %3d registers, %5d bytes shared, %3d stack, %2d spilled, %d blocks", k.entry, k.usage.Registers, k.usage.Shared, k.usage.Stack, k.usage.SpillStores, n)
		}
	}
	var all []string
	for _, n := range slices.Sorted(maps.Keys(blocks)) {
		all = append(all, fmt.Sprintf("%d: %d", n, blocks[n]))
	}
	t.Logf("%s: %d kernels (%s), most registers %d, %d with a stack; kernels by blocks of %d threads on a multiprocessor: %s%s",
		title, len(list), took, list[0].usage.Registers, stack, kernel.Block, strings.Join(all, ", "), &table)
}

// step is one of a real training.
type step struct {
	name string
	make func() (*graph.Graph, error)
}

// stepsFor are the steps that a list names.
func stepsFor(t *testing.T, names string) (list []step) {
	want := strings.Split(names, ",")
	for _, c := range []struct {
		net   string
		batch int
	}{{"conv32", 64}, {"conv64", 64}, {"resnet32", 64}, {"resnet128", 36}} {
		if names != "all" && !slices.Contains(want, c.net) {
			continue
		}
		p, err := bidvl.PresetFor(c.net)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, step{c.net, func() (*graph.Graph, error) {
			g, _, err := p.Config.Step(1, c.batch)
			return g, err
		}})
	}
	if names == "all" || slices.Contains(want, "conv-sm") {
		list = append(list, step{"conv-sm", func() (*graph.Graph, error) {
			g, _, err := bench.SmallConv().Step(1, 64)
			return g, err
		}})
	}
	if names == "all" || slices.Contains(want, "grbm-bidsm") {
		list = append(list, step{"grbm-bidsm", func() (*graph.Graph, error) {
			g, _, err := bench.Frey().Step(1, 100)
			return g, err
		}})
	}
	if names == "all" || slices.Contains(want, "methods") {
		list = append(list, presetSteps()...)
	}
	return list
}

// presetSteps are those of all presets that are whole without data.
func presetSteps() (list []step) {
	for _, m := range settings.Methods() {
		for _, p := range m.Presets {
			if p.Config.Validate() != nil {
				continue // it takes sizes from data
			}
			list = append(list, step{p.Name, func() (*graph.Graph, error) {
				g, _, err := p.Config.Clone().Model().Step(1, p.Batch)
				return g, err
			}})
		}
	}
	return list
}

// textsOf are the kernels of a step's launches, by entry, as the backend makes them where
// libraries do convolutions and products, and those that the clock may prefer to a library's.
func textsOf(t *testing.T, g *graph.Graph, bf16 bool) map[string]string {
	pl := planned(g, bf16)
	texts := map[string]string{}
	add := func(l kernel.Launch) { texts[l.Entry] = l.Source }
	for i := range pl.Steps {
		list, err := fewTexts(pl, i)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			add(l)
		}
	}
	for _, l := range cuda.Launches(pl, func(i int) bool { return !libraries(pl, i) }) {
		i := l.Chains[0][0]
		switch {
		case l.Alike:
			a, err := kernel.ForAlike(pl, slices.Concat(l.Chains...))
			if err != nil {
				t.Fatal(err)
			}
			add(a.Launch)
		case len(l.Chains) > 1 || len(l.Chains[0]) > 1:
			b, err := kernel.ForChains(pl, l.Chains)
			if err != nil {
				t.Fatal(err)
			}
			add(b.Launch)
		case !libraries(pl, i):
			list, err := kernel.For(pl, i)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list {
				add(k)
			}
		}
	}
	return texts
}

// fewTexts are the kernels of a convolution of few channels, none of another step.
func fewTexts(pl *plan.Plan, i int) ([]kernel.Launch, error) {
	if !kernel.FitsFew(pl, i) {
		return nil, nil
	}
	s := pl.Steps[i]
	s.Op = kernel.Few{Op: s.Op.(graph.Op)}
	one := *pl
	one.Steps = []plan.Step{s}
	return kernel.For(&one, 0)
}

// planned is the plan of a step on one rank, as the backend makes it.
func planned(g *graph.Graph, bf16 bool) *plan.Plan {
	precision := cuda.F32
	if bf16 {
		precision = cuda.BF16
	}
	o := cuda.PlanOptions(precision)
	o.World = 1
	pl := plan.New(g, o)
	for i := range pl.Steps {
		if !libraries(pl, i) {
			pl.Steps[i].Scratch = kernel.Scratch(pl, i)
		}
	}
	pl.Allocate()
	return pl
}
