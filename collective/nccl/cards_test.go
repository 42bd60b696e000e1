package nccl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

func TestJudge(t *testing.T) {
	good := func(n int) []card {
		cards := make([]card, n)
		for r := range cards {
			cards[r] = card{Version: 22809, GPU: "NVIDIA H100 (sm_90)", UUID: string(rune('a' + r)), Whole: string(rune('a' + r)), Bus: "0000:1b:00.0"}
		}
		return cards
	}
	for name, test := range map[string]struct {
		change func(cards []card)
		is     error
		want   string
	}{
		"good":    {func([]card) {}, nil, ""},
		"missing": {func(c []card) { c[1].Lacks = (&cuda.LoadError{Family: cuda.NCCL}).Error() }, ErrMissing, "rank 1: NCCL is missing: cuda: NCCL was not found: pip install"},
		"old": {func(c []card) { c[2] = newCardOf(c[2], 21805) }, ErrVersion,
			"rank 2: this NCCL does not serve: it is 2.18.5; 2.19.0 or newer is needed: pip install -U"},
		"other version": {func(c []card) { c[3].Version = 22703 }, ErrVersion, "rank 0 has NCCL 2.28.9, rank 3 has 2.27.3: install the same on all hosts"},
		"other GPU":     {func(c []card) { c[1].GPU = "NVIDIA H200 (sm_90)" }, ErrModels, "rank 0 has NVIDIA H100 (sm_90), rank 1 has NVIDIA H200 (sm_90): choose equal ones"},
		"shared":        {func(c []card) { c[3].Whole, c[3].UUID = c[1].Whole, c[1].UUID }, ErrShared, "ranks 1 and 3 are both on the GPU at 0000:1b:00.0 (b): give each rank a GPU of its own"},
		"parts": {func(c []card) { c[3].Whole = c[1].Whole }, ErrShared,
			"ranks 1 and 3 are on parts of one GPU (MIG), the one at 0000:1b:00.0 (b): give each rank a GPU of its own"},
		"hosts of processes": {func(c []card) {
			c[3].Whole, c[3].HostID, c[1].HostID = c[1].Whole, "x", "y"
		}, nil, ""},
		"one host of processes": {func(c []card) {
			c[3].Whole, c[3].HostID, c[1].HostID = c[1].Whole, "x", "x"
		}, ErrShared, "ranks 1 and 3"},
		"told to share":      {func(c []card) { c[3].Whole, c[3].Sharing, c[1].Sharing = c[1].Whole, true, true }, nil, ""},
		"one told to share":  {func(c []card) { c[3].Whole, c[3].Sharing = c[1].Whole, true }, ErrShared, "ranks 1 and 3"},
		"missing before old": {func(c []card) { c[0].Lacks, c[1].Version = "gone", 1 }, ErrMissing, "rank 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cards := good(4)
			test.change(cards)
			err := judge(cards)
			if test.is == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// newCardOf is c of a rank with another NCCL.
func newCardOf(c card, version int) card {
	n := newCard(cuda.Info{}, version, nil)
	n.GPU, n.UUID, n.Whole, n.Bus = c.GPU, c.UUID, c.Whole, c.Bus
	return n
}

func TestVersionText(t *testing.T) {
	for v, want := range map[int]string{2708: "2.7.8", 21903: "2.19.3", 22809: "2.28.9", 23007: "2.30.7"} {
		if got := versionText(v); got != want {
			t.Errorf("%d is %s, want %s", v, got, want)
		}
	}
}

// looking is a group in which it takes a while to find out who has not come.
type looking struct {
	Group
	goOn chan error
}

func (l looking) NotCome(collective.Request, time.Duration) error { return <-l.goOn }

// TestWithin: the limit ends the context with who has not come. Whose wait is over may close the
// group, so it is not before nobody looks at that any more.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, late := looking{goOn: make(chan error)}, errors.New("late")
		ctx, stop := within(t.Context(), g, time.Second, "dinner")
		stop()
		stop()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("in time, it ended with %v", context.Cause(ctx))
		}
		ctx, stop = within(t.Context(), g, time.Second, "dinner")
		time.Sleep(2 * time.Second)
		over := false
		go func() { stop(); over = true }()
		if synctest.Wait(); over {
			t.Error("it is over, and somebody looks who has come")
		}
		g.goOn <- late
		if synctest.Wait(); !over || !errors.Is(context.Cause(ctx), late) {
			t.Errorf("over: %v, with %v, want %v", over, context.Cause(ctx), late)
		}
	})
}
