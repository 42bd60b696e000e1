package main

import (
	"bytes"
	"strings"
	"testing"
)

// The head of a report says what the processors are called and how far apart they were, if
// it is known.
func TestApart(t *testing.T) {
	for _, tt := range []struct {
		cpu  string
		line []float64
		want string
	}{
		{"", nil, "; 2 processors, load"},
		{"", []float64{26.4, 160.1}, "; 2 processors, 26 to 160 ns apart, load"},
		{"AMD EPYC", []float64{26.4, 160.1}, "; 2 processors (AMD EPYC), 26 to 160 ns apart, load"},
	} {
		r := &Report{CPU: tt.cpu, Cores: 2, Threads: 1, Line: tt.line, Cases: []*Case{{Ranks: 1, OnHosts: []int{1}}}}
		var out bytes.Buffer
		if err := r.print(&out); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: %v, want %q in\n%s", tt.line, err, tt.want, out.String())
		}
	}
}
