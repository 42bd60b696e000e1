package cuda

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// notices is a slog.Handler that says what the driver's package has to tell, as a
// sentence.
type notices struct{ say func(string) }

func (n notices) Enabled(context.Context, slog.Level) bool { return true }
func (n notices) WithAttrs([]slog.Attr) slog.Handler       { return n }
func (n notices) WithGroup(string) slog.Handler            { return n }

// Handle says, for example, "a kernel is damaged (file /a/b)".
func (n notices) Handle(_ context.Context, r slog.Record) error {
	var more []string
	r.Attrs(func(a slog.Attr) bool {
		more = append(more, fmt.Sprintf("%s %v", a.Key, a.Value))
		return true
	})
	text := r.Message
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	n.say(text)
	return nil
}

// oneByOne is say, which several goroutines may call.
func oneByOne(say func(string)) func(string) {
	var mu sync.Mutex
	return func(s string) {
		mu.Lock()
		defer mu.Unlock()
		say(s)
	}
}
