package ddp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
)

// ErrDisagree means that ranks do not run the same program or do not hold the
// same weights.
var ErrDisagree = errors.New("ddp: ranks disagree")

// Agree compares text, the description of what a rank is about to run, on all
// ranks. If it differs somewhere, every rank gets the same error, which names
// the two ranks and the first line that differs.
func Agree(ctx context.Context, c collective.Comm, what, text string) error {
	if c.Size() == 1 {
		return nil
	}
	sums, err := gather(ctx, c, what, sum(text))
	if err != nil {
		return err
	}
	odd := oddOneOut(sums)
	if odd < 0 {
		return nil
	}
	first, err := share(ctx, c, what, 0, text)
	if err != nil {
		return err
	}
	other, err := share(ctx, c, what, odd, text)
	if err != nil {
		return err
	}
	n, a, b := firstDifference(first, other)
	return fmt.Errorf("%w: %s, line %d: rank 0 has %s, rank %d has %s: start all ranks with the same program, flags and data",
		ErrDisagree, what, n, a, odd, b)
}

// Replicas compares the named variables of all ranks, bit for bit. If they
// differ, or a rank lacks one, every rank gets the same error, which names the
// ranks and the first variable.
func Replicas(ctx context.Context, c collective.Comm, vars exec.Vars, names []string) error {
	var text strings.Builder
	var missing []error
	for _, name := range names {
		t, err := vars.Get(name)
		if err != nil { // the others wait for this rank's verdict all the same
			missing = append(missing, err)
			fmt.Fprintf(&text, "%s: %v\n", name, err)
			continue
		}
		hash := sha256.Sum256(t.Bytes())
		fmt.Fprintf(&text, "%s %v %x\n", name, t.Type, hash[:8])
	}
	if err := Agree(ctx, c, "weights", text.String()); err != nil {
		return err
	}
	return errors.Join(missing...)
}

func sum(text string) []byte {
	h := sha256.Sum256([]byte(text))
	return h[:]
}

// gather collects equally long blobs from all ranks.
func gather(ctx context.Context, c collective.Comm, what string, mine []byte) ([][]byte, error) {
	all := make([]byte, c.Size()*len(mine))
	copy(all[c.Rank()*len(mine):], mine)
	req := collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(all), Label: "agree on " + what}
	if err := collective.Do(ctx, c, req); err != nil {
		return nil, err
	}
	blobs := make([][]byte, c.Size())
	for r := range blobs {
		blobs[r] = all[r*len(mine) : (r+1)*len(mine)]
	}
	return blobs, nil
}

// oddOneOut is the first rank whose blob is not rank 0's, or −1.
func oddOneOut(blobs [][]byte) int {
	for r, b := range blobs {
		if !bytes.Equal(b, blobs[0]) {
			return r
		}
	}
	return -1
}

// share gives every rank the text of rank root.
func share(ctx context.Context, c collective.Comm, what string, root int, text string) (string, error) {
	length := []int64{int64(len(text))}
	req := collective.Request{Kind: collective.Broadcast, Root: root, Vec: collective.VecOf(length), Label: "share " + what}
	if err := collective.Do(ctx, c, req); err != nil {
		return "", err
	}
	buf := make([]byte, length[0])
	if c.Rank() == root {
		copy(buf, text)
	}
	req.Vec = collective.VecOf(buf)
	err := collective.Do(ctx, c, req)
	return string(buf), err
}

// firstDifference is the number, from 1, of the first line in which two texts
// differ, and that line of each, quoted, or "nothing" past the end of a text.
func firstDifference(a, b string) (n int, la, lb string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		if la, lb = lineAt(as, i), lineAt(bs, i); la != lb {
			return i + 1, la, lb
		}
	}
	return 0, "", ""
}

func lineAt(lines []string, i int) string {
	if i >= len(lines) {
		return "nothing"
	}
	return strconv.Quote(lines[i])
}
