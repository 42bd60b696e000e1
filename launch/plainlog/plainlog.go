// Package plainlog is a log for people, on the terminal of a program that they
// started: one plain sentence a line,
//
//	train: warning: no checkpoint to resume from: dir runs/a/ckpt
//
// It has no time and no rank, so that the launcher can show the equal lines of
// several ranks as one.
package plainlog

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Handler writes warnings and errors to people. It may be used from any
// goroutine.
type Handler struct {
	out     *output
	program string
	prefix  string   // of the keys: the groups, each with a dot
	with    []string // what With has added, in words
}

// output is shared by a handler and those made of it.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// New is a handler that writes to w in the name of a program.
func New(program string, w io.Writer) *Handler {
	return &Handler{out: &output{w: w}, program: program}
}

// Enabled is true for warnings and errors.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes a record as one line.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	kind := "warning"
	if r.Level >= slog.LevelError {
		kind = "error"
	}
	words := append([]string{}, h.with...)
	r.Attrs(func(a slog.Attr) bool {
		words = h.appendWords(words, h.prefix, a)
		return true
	})
	text := h.program + ": " + kind + ": " + r.Message
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")+"\n")
	return err
}

// appendWords says an attribute: its key, in words, and its value; those of an
// error are its text alone.
func (h *Handler) appendWords(words []string, prefix string, a slog.Attr) []string {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, in := range v.Group() {
			words = h.appendWords(words, prefix, in)
		}
		return words
	}
	if a.Equal(slog.Attr{}) {
		return words
	}
	if a.Key == "error" || a.Key == "err" || a.Key == "problem" {
		return append(words, v.String())
	}
	return append(words, strings.ReplaceAll(prefix+a.Key, "_", " ")+" "+v.String())
}

// WithAttrs is a handler that adds attributes to each record.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *h
	other.with = append([]string{}, h.with...)
	for _, a := range attrs {
		other.with = h.appendWords(other.with, h.prefix, a)
	}
	return &other
}

// WithGroup is a handler whose attributes' keys begin with a name.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	other := *h
	other.prefix += name + "."
	return &other
}
