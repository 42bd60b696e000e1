package ddp

import (
	"context"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
)

// Gather makes the whole of a sharded variable, on every rank, of the ranks' parts, of
// which mine is this one's. All ranks call it.
func (s Sharded) Gather(ctx context.Context, c collective.Comm, mine *exec.Tensor) (*exec.Tensor, error) {
	part := s.Part.Bytes()
	all := make([]byte, c.Size()*part)
	copy(all[c.Rank()*part:], mine.Bytes())
	req := collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(all), Label: "parts of " + s.Name}
	if err := collective.Do(ctx, c, req); err != nil {
		return nil, err
	}
	whole := exec.NewTensor(s.Whole)
	copy(whole.Bytes(), all)
	return whole, nil
}

// PartOf is the part of rank r of the whole of a sharded variable, zeros beyond its end.
func (s Sharded) PartOf(whole *exec.Tensor, r int) *exec.Tensor {
	mine := exec.NewTensor(s.Part)
	from := min(r*s.Part.Bytes(), s.Whole.Bytes())
	copy(mine.Bytes(), whole.Bytes()[from:])
	return mine
}
