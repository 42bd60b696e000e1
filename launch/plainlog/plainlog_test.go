package plainlog

import (
	"log/slog"
	"strings"
	"testing"
)

// TestWarnings wants lines that are the same on all ranks.
func TestWarnings(t *testing.T) {
	var b strings.Builder
	log := slog.New(New("prog", &b))
	log.Info("not shown")
	log.Warn("torn", "path", "a b")
	if want := "prog: level=WARN msg=torn path=\"a b\"\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
