package plainlog

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestPlainWords wants sentences, the same on all ranks.
func TestPlainWords(t *testing.T) {
	var b strings.Builder
	log := slog.New(New("prog", &b))
	log.Info("not shown")
	log.Debug("nor this")
	log.Warn("checkpoint skipped", "path", "a b/c", "problem", "weights.safetensors:\ndamaged")
	log.Warn("nothing to add")
	log.Error("a rank was lost from sight", "local_rank", 3, "error", errors.New("no luck"))
	log.With(slog.Int("step", 7)).WithGroup("at").Warn("slow", slog.Float64("s", 1.5), slog.Group("", slog.Int("n", 2)), slog.Attr{})
	log.With("a", 1).With("b", 2).WithGroup("g").WithGroup("h").Warn("both", "c", 3)
	const want = `prog: warning: checkpoint skipped: path a b/c, weights.safetensors:; damaged
prog: warning: nothing to add
prog: error: a rank was lost from sight: local rank 3, no luck
prog: warning: slow: step 7, at.s 1.5, at.n 2
prog: warning: both: a 1, b 2, g.h.c 3
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
