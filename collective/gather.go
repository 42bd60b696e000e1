package collective

import "context"

// GatherBytes gives every rank every rank's bytes, by rank; they may be of any
// lengths. The Comm's vectors must lie in host memory. It is two all-gathers.
func GatherBytes(ctx context.Context, c Comm, label string, mine []byte) ([][]byte, error) {
	lengths := make([]int64, c.Size())
	lengths[c.Rank()] = int64(len(mine))
	if err := Do(ctx, c, Request{Kind: AllGather, Vec: VecOf(lengths), Label: label + ", lengths"}); err != nil {
		return nil, err
	}
	var most int64
	for _, n := range lengths {
		most = max(most, n)
	}
	all := make([]byte, int(most)*c.Size())
	copy(all[int(most)*c.Rank():], mine)
	if err := Do(ctx, c, Request{Kind: AllGather, Vec: VecOf(all), Label: label}); err != nil {
		return nil, err
	}
	out := make([][]byte, c.Size())
	for r, n := range lengths {
		out[r] = all[int(most)*r:][:n:n]
	}
	return out, nil
}
