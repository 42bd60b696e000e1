package main

import (
	"bytes"
	"slices"
	"sync"
)

// tail keeps what says most of a long output, from the last marker on: its end, and a
// crash from its first line on. It may be written to and read by several goroutines.
type tail struct {
	mu          sync.Mutex
	crash, last []byte
}

// marker is a line of the output where a check begins.
const marker = "== a check begins ==\n"

// excerptBytes is what is told of a long output.
const excerptBytes = 3000

// crashes begin what Go, C and compute-sanitizer put out when a process crashes.
var crashes = []string{"panic: ", "fatal error: ", "SIGQUIT: ", "SIGSEGV: ", "SIGABRT: "}

func (t *tail) Write(p []byte) (n int, err error) {
	n = len(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if at := bytes.LastIndex(t.last, []byte(marker)); at >= 0 {
		t.crash, t.last, p = nil, slices.Clone(t.last[at+len(marker):]), nil
	}
	if t.crash == nil {
		if at := beginning(t.last); at >= 0 {
			t.crash = slices.Clone(t.last[at:])
		}
	} else {
		t.crash = append(t.crash, p...)
	}
	t.crash = t.crash[:min(len(t.crash), excerptBytes)]
	t.last = slices.Delete(t.last, 0, max(0, len(t.last)-excerptBytes))
	return n, nil
}

// beginning is where a crash begins in a text, -1 if there is none.
func beginning(text []byte) int {
	first := -1
	for _, c := range crashes {
		if at := bytes.Index(text, []byte(c)); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// excerpt is the crash, if there is one, else the end.
func (t *tail) excerpt() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash != nil {
		return string(t.crash)
	}
	return string(t.last)
}
