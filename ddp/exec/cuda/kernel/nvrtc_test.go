package kernel

import (
	"flag"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda/kernel/kerneltest"
)

var archs = flag.String("kernels.archs", "sm_75,sm_90", "what TestNVRTC compiles for")

// TestNVRTC compiles every text of TestCPlusPlus, or without -kernels.all one in twelve
// and all kinds of kernels, by a real NVRTC (see cudatest.NeedCompiler), and looks at what
// that makes of them.
func TestNVRTC(t *testing.T) {
	oneGoroutine(t)
	version := cudatest.NeedCompiler(t)
	texts := sampled(everyText(t))
	var mu sync.Mutex
	var spilled, scattered []string
	var wg sync.WaitGroup
	for _, arch := range strings.Split(*archs, ",") {
		for _, l := range texts {
			wg.Go(func() {
				k := kerneltest.Text{Entry: l.Entry, Source: l.Source, Block: Block}
				tr, err := cuda.Translate(arch, l.Entry, l.Source, cuda.CompileOptions{Options: Options()})
				if err != nil {
					t.Errorf("%s: %v", arch, err)
					return
				}
				for _, f := range k.Faults(tr) {
					t.Errorf("%s, %s: %s\n%s", arch, l.Entry, f, l.Source[len(dialect):])
				}
				mu.Lock()
				defer mu.Unlock()
				if u := tr.Usage()[l.Entry]; u.SpillStores > 0 {
					spilled = append(spilled, l.Entry)
				}
				// A batch holds texts that are here themselves, too.
				if len(k.Scattered(tr)) > 0 && !strings.Contains(l.Source, "typedef i64 idx;") && !strings.HasPrefix(l.Entry, "batch_") {
					scattered = append(scattered, l.Entry)
				}
			})
		}
	}
	wg.Wait()
	t.Logf("NVRTC %s: %d texts for %s; in %d registers are spilled: %v; in %d vectors are taken apart: %v", version, len(texts), *archs, len(spilled), spilled, len(scattered), scattered)
	// Random groups have steps without use, whose vectors nobody moves.
	if 50*len(scattered) > len(texts) {
		t.Errorf("in %d of %d kernels vectors are taken apart", len(scattered), len(texts))
	}
}

// sampled is one text in twelve, and one at least of each kind.
func sampled(texts []Launch) (some []Launch) {
	if *all {
		return texts
	}
	kinds := map[string]bool{}
	for i, l := range texts {
		kind, _, _ := strings.Cut(l.Entry, "_")
		if i%12 == 0 || !kinds[kind] {
			kinds[kind] = true
			some = append(some, l)
		}
	}
	return some
}
