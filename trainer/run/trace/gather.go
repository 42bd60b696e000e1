package trace

import (
	"context"
	"encoding/json"
	"fmt"

	"ebtrain/collective"
)

// Gather brings the spans of all ranks together, by rank; every rank calls it
// and gets them. c is nil in a world of one.
func Gather(ctx context.Context, c collective.Comm, mine []Span) ([][]Span, error) {
	if c == nil || c.Size() == 1 {
		return [][]Span{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, c.Size())
	sizes[c.Rank()] = int64(len(text))
	if err := allGather(ctx, c, collective.VecOf(sizes)); err != nil {
		return nil, err
	}
	most := 0
	for _, n := range sizes {
		most = max(most, int(n))
	}
	texts := make([]byte, c.Size()*most)
	copy(texts[c.Rank()*most:], text)
	if err := allGather(ctx, c, collective.VecOf(texts)); err != nil {
		return nil, err
	}
	ranks := make([][]Span, c.Size())
	for r := range ranks {
		if err := json.Unmarshal(texts[r*most:][:sizes[r]], &ranks[r]); err != nil {
			return nil, fmt.Errorf("trace of rank %d: %w", r, err)
		}
	}
	return ranks, nil
}

func allGather(ctx context.Context, c collective.Comm, v collective.Vec) error {
	return collective.Do(ctx, c, collective.Request{Kind: collective.AllGather, Vec: v, Label: "trace"})
}
