package supervise

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ebtrain/launch/outlet"
)

func TestLines(t *testing.T) {
	tests := []struct{ name, in, lines, status string }{
		{"lines", "a\nb\n", "a|b", ""},
		{"no newline at the end", "a\nb", "a|b", ""},
		{"empty lines", "\n\na\n", "||a", ""},
		{"windows", "a\r\nb\r\n", "a|b", ""},
		{"bar, carriage return first", "\r10%\r20%\r30%\n", "30%", "10%|20%|"},
		{"bar, carriage return last", "10%\r20%\r\nnext\n", "20%|next", "10%|"},
		{"bar that ends with nothing", "10%\r20%\r", "20%", "10%|20%|"},
		{"bar, what was drawn stays", "10%\r\r\nnext\n", "10%|next", "10%|"},
		{"bar, what was drawn is the end", "10%\r\r", "10%", "10%|"},
		{"plain text after a bar", "10%\rdone\nab", "done|ab", "10%|"},
		{"text after a bar", "10%\rdone\n", "done", "10%|"},
	}
	for _, tt := range tests {
		for _, chunk := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, chunk), func(t *testing.T) {
				var got, status []string
				l := &lines{line: func(s string) { got = append(got, s) }, status: func(s string) { status = append(status, s) }}
				for b := []byte(tt.in); len(b) > 0; b = b[min(chunk, len(b)):] {
					if n, err := l.Write(b[:min(chunk, len(b))]); err != nil || n != min(chunk, len(b)) {
						t.Fatal(n, err)
					}
				}
				l.end()
				if s := strings.Join(got, "|"); s != tt.lines {
					t.Errorf("lines %q, want %q", s, tt.lines)
				}
				if s := strings.Join(status, "|"); chunk > 1 && s != tt.status {
					t.Errorf("status %q, want %q", s, tt.status)
				}
			})
		}
	}
}

func TestLongLineIsCut(t *testing.T) {
	var n []int
	l := &lines{line: func(s string) { n = append(n, len(s)) }, status: func(string) {}}
	if _, err := fmt.Fprint(l, strings.Repeat("x", 2*maxLine+5), "\n"); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(n) != fmt.Sprint([]int{maxLine, maxLine, 5}) {
		t.Errorf("pieces of %v", n)
	}
}

func TestConsoleKeepsTheBarLast(t *testing.T) {
	var b bytes.Buffer
	w, _ := outlet.Pair(&b, &b)
	c := newConsole(w, w, true, nil, 1)
	c.name = "ddplaunch"
	c.status(0, "10%")
	c.line(0, stdout, "loss 1")
	c.status(1, "ignored: rank 0 owns the bar")
	c.status(0, "")
	c.line(0, stderr, "loss 2")
	if err := c.flush(); err != nil {
		t.Error(err)
	}
	const erase = "\r\x1b[K"
	if want := "\r[0] 10%\x1b[K" + erase + "[0] loss 1\n" + "\r[0] 10%\x1b[K" + erase + "[0] loss 2\n"; b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}

func TestGuarded(t *testing.T) {
	const told = "=a-e0\n+10\n+11\n-10\n+1\n+0\n+-5\nx\n\n=a-e1\n+12"
	for end, want := range map[string]bool{"": false, "\n.\n": true} {
		groups, jobs, over := guarded(strings.NewReader(told + end))
		if len(groups) != 2 || !groups[11] || !groups[12] || len(jobs) != 2 || !jobs["a-e0"] || !jobs["a-e1"] || over != want {
			t.Errorf("got %v, %v, %v, want 11 and 12, a-e0 and a-e1, %v", groups, jobs, over, want)
		}
	}
}

func TestParseStreams(t *testing.T) {
	s, err := ParseStreams("0:1,2:3")
	if err != nil || !s.has(0, stdout) || s.has(0, stderr) || s.has(1, stdout) || !s.has(2, stderr) {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, bad := range []string{"", "4", "-1", "x", "0:4", "a:1", "0:", "-1:2", "0:1,"} {
		if s, err := ParseStreams(bad); err == nil {
			t.Errorf("%q was accepted as %+v", bad, s)
		}
	}
}

// A bar never fills the terminal's last column, and is drawn anew when the
// terminal has another width.
func TestBarFitsTheTerminal(t *testing.T) {
	var out, err bytes.Buffer
	width := 120
	o, e := outlet.Pair(&out, &err)
	c := newConsole(o, e, true, func() int { return width }, 1)
	c.name = "ddplaunch"
	text := strings.Repeat("=", 100)
	c.status(0, text+strings.Repeat(" ", 60))
	for _, tt := range []struct {
		width int
		want  string
	}{{120, "[0] " + text}, {60, "[0] " + text[:55]}, {40, "[0] " + text[:35]}, {1, ""}, {0, "[0] " + text}} {
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		err.Reset()
		width = tt.width
		c.redraw()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := "\r" + tt.want + "\x1b[K"; err.String() != want {
			t.Errorf("width %d: drawn %q, want %q", tt.width, err.String(), want)
		}
	}
	if err := c.flush(); err != nil {
		t.Error(err)
	}
}
