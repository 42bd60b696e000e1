package cuda

import (
	"context"
	"errors"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
)

// sharedOver is the shared program on a rank's GPU, over what a backend joins the ranks by; done
// closes both.
func sharedOver(ctx context.Context, t *testing.T, c Config, below collective.Comm, o exec.Options) (_ *program, done func() error, err error) {
	t.Helper()
	b, err := New(c)
	if err != nil {
		return nil, nil, err
	}
	o.Name = "shared"
	if o.Comm, err = b.Connect(ctx, below); err == nil {
		var p exec.Program
		if p, err = b.Compile(shared(t), o); err == nil {
			return p.(*program), func() error { return errors.Join(p.Close(), b.Close()) }, nil
		}
	}
	return nil, nil, errors.Join(err, b.Close())
}
