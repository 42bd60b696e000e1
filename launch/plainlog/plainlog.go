// Package plainlog is a log for people, on the terminal of a program that they
// started.
package plainlog

import (
	"io"
	"log/slog"
)

// New is a log for people: warnings and errors only, one line each, that
// begins with the program's name and has no time and no rank, so that the
// launcher can show the equal lines of several ranks as one.
func New(program string, w io.Writer) slog.Handler {
	return slog.NewTextHandler(prefixed{program + ": ", w}, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	})
}

// prefixed puts a text before each write, which of a slog handler is a line.
type prefixed struct {
	text string
	w    io.Writer
}

func (p prefixed) Write(line []byte) (int, error) {
	if _, err := io.WriteString(p.w, p.text+string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
