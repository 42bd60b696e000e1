package supervise

import "bytes"

// maxLine is the longest line kept whole; longer ones are cut into pieces.
const maxLine = 1 << 20

// lines cuts a stream into lines. A carriage return that is not followed by a
// newline means that the text before it is to be overwritten: a progress bar.
// Such text is given to status, never to line, except for the last before a
// newline or the end.
type lines struct {
	line   func(text string) // a whole line, without its newline
	status func(text string) // what a terminal would show on the current line

	buf     []byte // text since the last newline or carriage return
	pending bool   // a carriage return has been seen, what follows decides
	drawn   bool   // the current line has been overwritten at least once
	last    string // the last overwritten text that was not empty
}

// Write takes the next bytes of the stream. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if l.pending && p[0] != '\n' {
			l.overwrite()
		}
		l.pending = false
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			l.add(p)
			p = nil
		} else {
			l.add(p[:i])
			if p[i] == '\n' {
				l.newline()
			} else {
				l.pending = true
			}
			p = p[i+1:]
		}
	}
	if l.drawn && len(l.buf) > 0 {
		l.status(string(l.buf))
	}
	return n, nil
}

func (l *lines) add(p []byte) {
	for l.buf = append(l.buf, p...); len(l.buf) > maxLine; {
		l.line(string(l.buf[:maxLine]))
		l.buf = append(l.buf[:0], l.buf[maxLine:]...)
	}
}

func (l *lines) overwrite() {
	l.drawn = true
	if len(bytes.TrimSpace(l.buf)) > 0 {
		l.last = string(l.buf)
		l.status(l.last)
	}
	l.buf = l.buf[:0]
}

func (l *lines) newline() {
	text := string(l.buf)
	if text == "" && l.drawn {
		text = l.last
	}
	if l.drawn {
		l.status("")
	}
	l.buf, l.drawn, l.last = l.buf[:0], false, ""
	l.line(text)
}

// end takes the end of the stream: text without a newline becomes a line.
func (l *lines) end() {
	if len(l.buf) > 0 || l.drawn && l.last != "" {
		l.newline()
	}
}
