//go:build cgo

package choose_test

import (
	"errors"
	"strings"
	"testing"

	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
	"ebtrain/ddp/graph"
)

// newFew has a kernel for convolutions of three channels.
func newFew(p linalg.Problem) (linalg.Candidate, error) {
	if c, ok := p.(linalg.Conv); !ok || min(c.C, c.O) != 3 {
		return nil, nil
	}
	return linalgtest.NewPlain(p)
}

// TestFew: a kernel of the caller's for few channels is one that can be chosen, and the same
// again on other ranks and in a resumed run; nobody asks for it where nothing is timed.
func TestFew(t *testing.T) {
	d := open(t)
	d.o.Convolutions, d.o.Products, d.o.Plain, d.o.Few = nil, nil, nil, newFew
	var ps []linalg.Problem
	for _, p := range fewChannels() {
		if c := p.(linalg.Conv); min(c.C, c.O) == 3 {
			ps = append(ps, p)
		}
	}
	file := d.again(t, ps, "few reference")
	for name, change := range map[string]func(*choose.Options){
		"without it": func(o *choose.Options) { o.Few = nil },
		"of others":  func(o *choose.Options) { o.Few = func(linalg.Problem) (linalg.Candidate, error) { return nil, nil } },
	} {
		d.said = nil
		if list, err := d.chooser(t, func(o *choose.Options) { o.File = file; change(o) }).Choose(ps[:1]); err == nil || len(d.said) != 1 {
			t.Errorf("%s: %v, %v, said %q", name, list, err, d.said)
		}
	}
	d.said = nil
	if _, err := d.chooser(t, func(o *choose.Options) { o.Untimed = true }).Choose(ps[:1]); err == nil {
		t.Error("it is taken where nothing is timed")
	}
	broken := errors.New("broken")
	_, err := d.chooser(t, func(o *choose.Options) {
		o.Few = func(linalg.Problem) (linalg.Candidate, error) { return nil, broken }
	}).Choose(ps[:1])
	if !errors.Is(err, broken) {
		t.Errorf("where it cannot be made: %v", err)
	}
}

// TestFewBeside: it is asked for once, beside what the libraries have, and not for others.
func TestFewBeside(t *testing.T) {
	d := open(t)
	asked := map[string]int{}
	d.o.Few = func(p linalg.Problem) (linalg.Candidate, error) {
		asked[p.String()]++
		return newFew(p)
	}
	ps := append(fewChannels(), conv(ty(graph.BF16, graph.BF16, graph.BF16, linalg.BF16)))
	list, err := d.chooser(t, nil).Choose(ps)
	if err != nil {
		t.Fatal(err)
	}
	d.bits(t, ps, list)
	few := 0
	for i, p := range ps {
		if n := asked[p.String()]; n != 1 {
			t.Errorf("%v: asked %d times", p, n)
		}
		if strings.HasPrefix(names(list)[i], "few ") {
			few++
		}
	}
	t.Logf("%d of %d are chosen", few, len(ps))
}
