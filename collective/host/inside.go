package host

import (
	"context"
	"encoding/binary"
	"fmt"

	"ebtrain/collective"
)

// Inside is what a Device may ask of the group while it carries out a
// collective. Every rank's Device asks the same, in the same order.
type Inside struct {
	*Comm
	base mover
	call *rollCall
	seq  uint64 // of the collective under way
}

// Do runs a collective in host memory. If ctx ends first, the group does, and also if
// somebody does not come to it within the group's limit.
func (in *Inside) Do(ctx context.Context, req collective.Request) error {
	if err := req.Check(in.Size()); err != nil {
		return err
	}
	in.call.expect(req, false)
	defer in.call.over()
	in.base.begin(in.seq, req)
	return in.base.finish(ctx, req)
}

// CallRoll is that of Comm, while the device carries out a collective that is late.
func (in *Inside) CallRoll(ctx context.Context, what string) error {
	req := collective.Request{Kind: collective.Barrier, Label: what}
	if in.Size() == 1 {
		return nil
	}
	in.call.expect(req, false)
	defer in.call.over()
	return in.meeting.consent(ctx, localHeader{header: markedHeader(in.seq, markRoll), seg: -1}, what)
}

// GatherBytes gives every rank every rank's bytes. See collective.GatherBytes.
func (in *Inside) GatherBytes(label string, mine []byte) ([][]byte, error) {
	return collective.GatherBytes(context.Background(), insideComm{in}, label, mine)
}

// insideComm is the group of the hosts, inside a collective of the device's.
type insideComm struct{ *Inside }

// Do runs a collective in host memory.
func (c insideComm) Do(ctx context.Context, req collective.Request) error {
	return c.Inside.Do(ctx, req)
}

// Agree compares lines on all ranks, what says of what. A difference is an
// ErrMismatch on every rank, that names the two and the first line.
func (in *Inside) Agree(what string, lines []string) error {
	all, err := in.gather(lines)
	if err != nil {
		return err
	}
	for r, theirs := range all {
		for i := range max(len(theirs), len(all[0])) {
			a, b := lineAt(all[0], i), lineAt(theirs, i)
			if a != b {
				return fmt.Errorf("%w: %s %d: rank 0 has %s, rank %d has %s", collective.ErrMismatch, what, i, a, r, b)
			}
		}
	}
	return nil
}

func lineAt(lines []string, i int) string {
	if i >= len(lines) {
		return "none"
	}
	return lines[i]
}

// gather gives every rank every rank's lines.
func (in *Inside) gather(lines []string) ([][]string, error) {
	var mine []byte
	for _, l := range lines {
		mine = binary.LittleEndian.AppendUint32(mine, uint32(len(l)))
		mine = append(mine, l...)
	}
	blobs, err := in.GatherBytes("lines to compare", mine)
	if err != nil {
		return nil, err
	}
	out := make([][]string, len(blobs))
	for r, b := range blobs {
		for len(b) > 0 {
			n := int(binary.LittleEndian.Uint32(b))
			out[r] = append(out[r], string(b[4:4+n]))
			b = b[4+n:]
		}
	}
	return out, nil
}
