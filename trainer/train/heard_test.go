package main

import (
	"log/slog"
	"strings"
	"testing"
)

// Who asks to stop while a step is compiled is told that it was heard; who does not is
// told nothing.
func TestHeard(t *testing.T) {
	for _, asked := range []bool{true, false} {
		var text strings.Builder
		stop, wrote := make(chan struct{}), make(chan struct{}, 1)
		log := slog.New(slog.NewTextHandler(told{&text, wrote}, nil))
		done := heard(stop, log)
		if asked {
			close(stop)
			<-wrote
		}
		done()
		if got := strings.Contains(text.String(), "asked to stop"); got != asked {
			t.Errorf("asked %v: it says %q", asked, text.String())
		}
	}
}

// told is a text that tells of each write.
type told struct {
	text  *strings.Builder
	wrote chan struct{}
}

func (w told) Write(b []byte) (int, error) {
	defer func() { w.wrote <- struct{}{} }()
	return w.text.Write(b)
}
