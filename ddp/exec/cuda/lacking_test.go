package cuda

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
)

// lacking has two ranks compile the shared program, each without what it lacks, and is their
// errors.
func lacking(t *testing.T, lacks [2]func(l *libraries) error) (errs [2]error) {
	t.Helper()
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		late := time.AfterFunc(3*time.Minute, func() { below.Abort(errors.New("the ranks wait for each other")) })
		defer late.Stop()
		b, err := New(Config{Ordinal: r, Lanes: 2})
		if err != nil {
			return err
		}
		if err := lacks[r](b.libs); err != nil {
			return err
		}
		comm, err := b.Connect(t.Context(), below)
		if err != nil {
			return err
		}
		p, err := b.Compile(shared(t), exec.Options{Name: "shared", Comm: comm})
		if errs[r] = err; err == nil {
			errs[r] = errors.Join(exec.Run(t.Context(), p), p.Close())
		}
		return b.Close()
	})
	return errs
}

// TestRankLacksLibraries: where some ranks have a library and others have not, all of them say
// so, in the same words; where none has one, all do without.
func TestRankLacksLibraries(t *testing.T) {
	nothing := func(*libraries) error { return nil }
	convs := func(l *libraries) error { err := l.convs.Close(); l.convs = nil; return err }
	both := func(l *libraries) error {
		err := errors.Join(convs(l), l.products.Close())
		l.products = nil
		return err
	}
	for name, c := range map[string]struct {
		lacks [2]func(*libraries) error
		want  string
	}{
		"rank 1 has neither":        {[2]func(*libraries) error{nothing, both}, "rank 0 has cuDNN 9.19.0 and rank 1 has no cuDNN, rank 0 has cuBLASLt 13.1.0 and rank 1 has no cuBLASLt: install the same cuDNN and cuBLASLt on all hosts"},
		"rank 0 has neither":        {[2]func(*libraries) error{both, nothing}, "rank 0 has no cuDNN and rank 1 has cuDNN 9.19.0, rank 0 has no cuBLASLt"},
		"rank 1 has no cuDNN":       {[2]func(*libraries) error{nothing, convs}, "rank 0 has cuDNN 9.19.0 and rank 1 has no cuDNN: install"},
		"one has neither, one half": {[2]func(*libraries) error{convs, both}, "rank 0 has cuBLASLt 13.1.0 and rank 1 has no cuBLASLt: install"},
		"none has any":              {[2]func(*libraries) error{both, both}, ""},
		"none has cuDNN":            {[2]func(*libraries) error{convs, convs}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range lacking(t, c.lacks) {
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("rank %d: got %v, want %q", r, err, c.want)
				}
			}
		})
	}
}
