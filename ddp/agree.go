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
)

// ErrDisagree means that ranks do not run the same program or do not hold the
// same weights.
var ErrDisagree = errors.New("ddp: ranks disagree")

// Agree compares text, the description of what a rank is about to run, on all
// ranks. If it differs somewhere, every rank gets the same error, which names
// the two ranks and the first line that differs.
func Agree(ctx context.Context, c collective.Comm, what, text string) error {
	return newAgreement(c, what).on(ctx, []byte(text))
}

// agreement is a comparison of texts, made once and used any number of times.
// It allocates nothing while the ranks agree.
type agreement struct {
	c    collective.Comm
	what string
	sums []byte // of the texts of all ranks
	req  collective.Request
}

func newAgreement(c collective.Comm, what string) *agreement {
	a := &agreement{c: c, what: what, sums: make([]byte, c.Size()*sha256.Size)}
	a.req = collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(a.sums), Label: "agree on " + what}
	return a
}

// on compares text.
func (a *agreement) on(ctx context.Context, text []byte) error {
	if a.c.Size() == 1 {
		return nil
	}
	mine := sha256.Sum256(text)
	copy(a.sum(a.c.Rank()), mine[:])
	if err := collective.Do(ctx, a.c, a.req); err != nil {
		return err
	}
	odd := a.oddOneOut()
	if odd < 0 {
		return nil
	}
	first, err := share(ctx, a.c, a.what, 0, text)
	if err != nil {
		return err
	}
	other, err := share(ctx, a.c, a.what, odd, text)
	if err != nil {
		return err
	}
	n, l0, l1 := firstDifference(first, other)
	return fmt.Errorf("%w: %s, line %d: rank 0 has %s, rank %d has %s: start all ranks with the same program, flags and data",
		ErrDisagree, a.what, n, l0, odd, l1)
}

func (a *agreement) sum(r int) []byte { return a.sums[r*sha256.Size : (r+1)*sha256.Size] }

// oddOneOut is the first rank whose text is not rank 0's, or −1.
func (a *agreement) oddOneOut() int {
	for r := range a.c.Size() {
		if !bytes.Equal(a.sum(r), a.sum(0)) {
			return r
		}
	}
	return -1
}

// share gives every rank the text of rank root.
func share(ctx context.Context, c collective.Comm, what string, root int, text []byte) (string, error) {
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
