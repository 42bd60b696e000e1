package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestGPUChoices: a run goes on with the kernels that its own file says, and has their bits,
// whether or not other runs' choices are at hand, and whatever a clock would choose.
func TestGPUChoices(t *testing.T) {
	long(t)
	for _, ranks := range []int{0, 2} { // 0 is one without a launcher
		t.Run(fmt.Sprintf("ranks %d", ranks), func(t *testing.T) {
			s := newSite(t).withGPUs(max(1, ranks))
			goOn := func(run string) {
				s.must(on(ranks, []string{"train", "--resume", "--out", run, "--steps", "2"})...)
			}
			s.must(on(ranks, onGPU("usual", "--steps", "1"))...)
			s.copy("usual", "plain")
			s.choosePlain("plain")
			s.copy("plain", "alone")
			goOn("usual")
			goOn("plain")
			s.freshChoices()
			goOn("alone")
			s.sameFiles("plain/ckpt/step-00000002", "alone/ckpt/step-00000002")
			if n := s.notPlain("alone"); n > 0 {
				t.Errorf("%d kernels were chosen anew", n)
			}
			if same(s.content("plain/ckpt/step-00000002"), s.content("usual/ckpt/step-00000002")) {
				t.Error("the run with plain kernels has the bits of the one with those that are usually chosen")
			}
		})
	}
}

// choicesOf are the choices that a run keeps, and the file's whole content.
func (s *site) choicesOf(run string) (choices, file map[string]any) {
	s.t.Helper()
	if err := json.Unmarshal(read(s.t, s.path(run, "cuda-choices.json")), &file); err != nil {
		s.t.Fatal(err)
	}
	return file["choices"].(map[string]any), file
}

// notPlain is how many of a run's choices are no plain kernels.
func (s *site) notPlain(run string) (n int) {
	s.t.Helper()
	choices, _ := s.choicesOf(run)
	for _, c := range choices {
		if c.(map[string]any)["by"] != "plain" {
			n++
		}
	}
	return n
}

// copy copies a run.
func (s *site) copy(from, to string) {
	s.t.Helper()
	if err := os.CopyFS(s.path(to), os.DirFS(s.path(from))); err != nil {
		s.t.Fatal(err)
	}
}

// choosePlain makes a run's choices be the plain kernels, all of them, which no clock does.
func (s *site) choosePlain(run string) {
	s.t.Helper()
	if n := s.notPlain(run); n < 5 {
		s.t.Fatalf("%d kernels are other than plain, want more", n)
	}
	choices, file := s.choicesOf(run)
	for _, c := range choices {
		c := c.(map[string]any)
		c["by"] = "plain"
		delete(c, "saved")
	}
	text, err := json.Marshal(file)
	if err != nil {
		s.t.Fatal(err)
	}
	write(s.t, s.path(run, "cuda-choices.json"), text)
}

// same says whether two folders' contents are.
func same(a, b map[string][]byte) bool {
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return len(a) == len(b)
}
