package nccl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// card is what a rank tells the others before NCCL is begun.
type card struct {
	Version int    `json:"version"`         // of NCCL
	Lacks   string `json:"lacks,omitempty"` // why it cannot be used here; empty: it can
	Old     bool   `json:"old,omitempty"`   // because it is too old
	GPU     string `json:"gpu"`             // model and compute capability
	UUID    string `json:"uuid"`
	Whole   string `json:"whole"` // of the GPU of which it may be a part (MIG)
	Bus     string `json:"bus"`
	HostID  string `json:"host_id,omitempty"` // NCCL_HOSTID: the user makes hosts of processes
	Sharing bool   `json:"sharing,omitempty"` // NCCL_MULTI_RANK_GPU_ENABLE
	NVLS    bool   `json:"nvls,omitempty"`    // may be used
}

// newCard is the card of a rank with a GPU and an NCCL, or err instead.
func newCard(i cuda.Info, version int, err error) card {
	c := card{
		Version: version, GPU: fmt.Sprintf("%s (sm_%d%d)", i.Name, i.Major, i.Minor), UUID: i.UUID, Whole: i.Whole, Bus: i.BusID,
		HostID: os.Getenv("NCCL_HOSTID"), Sharing: os.Getenv("NCCL_MULTI_RANK_GPU_ENABLE") == "1",
	}
	switch {
	case err != nil:
		c.Lacks, c.Old = err.Error(), errors.Is(err, errOld)
	case version < Floor:
		c.Lacks, c.Old = "it is "+versionText(version), true
	}
	return c
}

// compareCards exchanges cards over the group of the hosts and is the same on all ranks: whether
// NVLS may be used on any, or an error: NCCL itself compares nothing, or hangs.
func compareCards(ctx context.Context, g Group, mine card) (nvls bool, err error) {
	blob, err := json.Marshal(mine)
	if err != nil {
		return false, err
	}
	blobs, err := collective.GatherBytes(ctx, g, "NCCL's versions and GPUs", blob)
	if err != nil {
		return false, err
	}
	cards := make([]card, len(blobs))
	for r, b := range blobs {
		if err := json.Unmarshal(b, &cards[r]); err != nil {
			return false, fmt.Errorf("nccl: the card of rank %d: %w", r, err)
		}
		nvls = nvls || cards[r].NVLS
	}
	return nvls, judge(cards)
}

// judge says what is wrong with these ranks, if anything: one sentence that names
// the first rank or pair.
func judge(cards []card) error {
	for r, c := range cards {
		switch {
		case c.Old:
			return fmt.Errorf("nccl: rank %d: %w: %s; %s or newer is needed: %s", r, ErrVersion, c.Lacks, versionText(Floor), install)
		case c.Lacks != "":
			return fmt.Errorf("nccl: rank %d: %w: %s", r, ErrMissing, c.Lacks)
		}
	}
	for r, c := range cards {
		if c.Version != cards[0].Version {
			return fmt.Errorf("nccl: %w: rank 0 has NCCL %s, rank %d has %s: install the same on all hosts", ErrVersion, versionText(cards[0].Version), r, versionText(c.Version))
		}
		if c.GPU != cards[0].GPU {
			return fmt.Errorf("nccl: %w: rank 0 has %s, rank %d has %s: choose equal ones by CUDA_VISIBLE_DEVICES, or start other hosts", ErrModels, cards[0].GPU, r, c.GPU)
		}
	}
	return shared(cards)
}

const install = "pip install -U nvidia-nccl-cu13 (CUDA 12: nvidia-nccl-cu12)"

// shared finds two ranks on one GPU, or on parts of one, which NCCL refuses, too. A user who gave their processes different
// NCCL_HOSTIDs, or told NCCL to allow it, knows what he does.
func shared(cards []card) error {
	first := map[string]int{}
	for r, c := range cards {
		o, twice := first[c.Whole]
		if !twice {
			first[c.Whole] = r
			continue
		}
		apart := c.HostID != "" && cards[o].HostID != "" && c.HostID != cards[o].HostID
		if !apart && !(c.Sharing && cards[o].Sharing) {
			on := "both on the GPU"
			if c.UUID != cards[o].UUID {
				on = "on parts of one GPU (MIG), the one"
			}
			return fmt.Errorf("nccl: %w: ranks %d and %d are %s at %s (%s): give each rank a GPU of its own", ErrShared, o, r, on, c.Bus, c.Whole)
		}
	}
	return nil
}

// within is a context that ends after limit, with a cause that names who has not
// come to what the group waits for then. The group may be closed when the function has
// returned that ends it: until then somebody may look at who has come.
func within(ctx context.Context, g Group, limit time.Duration, what string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	t := time.AfterFunc(limit, func() {
		defer close(looked)
		cancel(g.NotCome(collective.Request{Kind: collective.Barrier, Label: what}, limit))
	})
	return ctx, sync.OnceFunc(func() {
		if !t.Stop() {
			<-looked
		}
		cancel(nil)
	})
}
