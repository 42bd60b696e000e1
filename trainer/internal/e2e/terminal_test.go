package e2e

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// seen is what a terminal has been sent.
type seen struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *seen) read(user *os.File) {
	for b := make([]byte, 4096); ; {
		n, err := user.Read(b)
		s.mu.Lock()
		s.all.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return // the program has ended
		}
	}
}

// take is what has been sent since the last call.
func (s *seen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.all.String()
	s.all.Reset()
	return text
}

// bars are the drawings of a progress bar in text.
func bars(text string) []string {
	var all []string
	text = regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(text, "") // colours
	for _, line := range regexp.MustCompile(`[\r\n]+`).Split(text, -1) {
		if line = strings.TrimSuffix(line, "\x1b[K"); regexp.MustCompile(`[0-9]+/1000000 `).MatchString(line) && !strings.Contains(line, "\x1b") {
			all = append(all, line)
		}
	}
	return all
}

// The bar fits a terminal of any width, also one that changes, alone and under
// a launcher; from 60 columns on it has bar, rate and time left.
func TestTerminalWidths(t *testing.T) {
	long(t)
	for _, ranks := range []int{0, 2} {
		s := newSite(t)
		cmd, user := s.onTerminal(120, on(ranks, tiny("a", "--steps", "1000000", "--ckpt-every", "0"))...)
		var out seen
		var wg sync.WaitGroup
		wg.Go(func() { out.read(user) })
		if !s.comesTo("a", 3) {
			t.Fatalf("no steps: %s", out.take())
		}
		for _, width := range []int{120, 60, 40, 80, 120} {
			resize(t, user, width)
			fits := func(line string) bool {
				whole := regexp.MustCompile(`\[[-=> ]+\] \d+%  .*/s  .* left$`).MatchString(strings.TrimRight(line, " "))
				return width < 60 || whole && (width < 120 || utf8.RuneCountInString(line) > 100)
			}
			last, narrow, good := "", false, 0
			for begun := time.Now(); good < 3; time.Sleep(20 * time.Millisecond) { // from the next step on
				for _, last = range bars(out.take()) {
					n := utf8.RuneCountInString(last)
					if narrow && n >= width {
						t.Errorf("%d ranks, %d columns: %q has %d", ranks, width, last, n)
					}
					narrow = narrow || n < width // before it, what was on its way may be too wide
					if good++; n >= width || !fits(last) {
						good = 0
					}
				}
				if time.Since(begun) > patience/4 {
					t.Fatalf("%d ranks, %d columns: the last bar is %q", ranks, width, last)
				}
			}
		}
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // stopped before the end
		_ = user.Close()
		wg.Wait()
	}
}

// On a terminal that only adds line to line there are lines, and no bar and no code.
func TestDumbTerminal(t *testing.T) {
	for _, ranks := range []int{0, 2} {
		s := newSite(t)
		s.env = append(s.env, "TERM=dumb")
		cmd, user := s.onTerminal(100, on(ranks, tiny("a", "--steps", "3"))...)
		var out seen
		out.read(user)
		_ = cmd.Wait() // what it says is looked at
		if text := strings.ReplaceAll(out.take(), "\r\n", "\n"); strings.ContainsAny(text, "\r\x1b") || !strings.Contains(text, "step 1/3  ") || !strings.Contains(text, "3 steps done") {
			t.Errorf("%d ranks: %q", ranks, text)
		}
	}
}
