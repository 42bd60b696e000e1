package supervise

import (
	"strings"
	"testing"

	"ebtrain/launch/rendezvous"
)

// What a trace of the Go runtime says of how a program has ended.
func TestCrash(t *testing.T) {
	const stack = "\n\ngoroutine 1 [running]:\nmain.main()"
	usage := rendezvous.Exit{Code: 2, During: "during load"}
	segv := rendezvous.Exit{Signal: "SIGSEGV", SignalNumber: 11, During: "during load"}
	words := func(s string) rendezvous.Exit {
		return rendezvous.Exit{Code: 1, Crash: s, During: "during load"}
	}
	for name, tt := range map[string]struct {
		text string
		was  rendezvous.Exit
		want rendezvous.Exit
	}{
		"a mistake":            {"train: --out is required", usage, usage},
		"no words":             {"", usage, usage},
		"words of its own":     {"panic: at the disco", usage, usage},
		"signal":               {"SIGSEGV: segmentation violation\nPC=0x4b71e0 m=0 sigcode=0\n\ngoroutine 0 gp=0x5b4e40 m=0 mp=0x5b58a0 [idle]:", usage, segv},
		"in a C library":       {"SIGABRT: abort\nPC=0x7f m=0\nsignal arrived during cgo execution" + stack, usage, rendezvous.Exit{Signal: "SIGABRT", SignalNumber: 6, During: "during load"}},
		"runtime, signal":      {"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x80 addr=0x0 pc=0x1]\n\nruntime stack:", usage, segv},
		"runtime":              {"fatal error: concurrent map writes" + stack, usage, words("fatal error: concurrent map writes")},
		"panic":                {"panic: no such layer" + stack, usage, words("panic: no such layer")},
		"panic by a signal":    {"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]" + stack, usage, words("panic: runtime error: invalid memory address or nil pointer dereference")},
		"unknown signal":       {"SIGNAL: lost" + stack, usage, words("SIGNAL: lost")},
		"long":                 {"panic: " + strings.Repeat("x", 1000) + stack, usage, words("panic: " + strings.Repeat("x", maxCrash-len("panic: ")))},
		"the last":             {"panic: caught" + stack + "\npanic: not caught" + stack, usage, words("panic: not caught")},
		"behind half a line":   {"step 12/40  31 %  panic: worker panic: no such layer" + stack, usage, words("panic: worker panic: no such layer")},
		"a signal behind half": {"step 12SIGSEGV: segmentation violation\nPC=0x4b71e0 m=0 sigcode=0" + stack, usage, segv},
		"behind, by a signal":  {"step 12 fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x80 addr=0x0 pc=0x1]\n\nruntime stack:", usage, segv},
		"within another":       {"panic: first [recovered]\n\tpanic: second" + stack, usage, words("panic: first [recovered]")},
		"of several lines":     {"panic: first\n\tand a panic: of its own" + stack, usage, words("panic: first")},
		"told of, and a usage": {"warning: caught panic: x", usage, usage},
		"caught":               {"panic: caught" + stack, rendezvous.Exit{Code: 3}, rendezvous.Exit{Code: 3}},
		"with a core":          {"panic: x" + stack, rendezvous.Exit{Signal: "SIGABRT", SignalNumber: 6}, rendezvous.Exit{Code: 1, Crash: "panic: x"}},
		"no thread, with cgo":  {"runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nPC=0x7f m=5 sigcode=18446744073709551610\n\ngoroutine 0 gp=0x5b4e40 m=5 mp=0x5b58a0 [idle]:", usage, rendezvous.Exit{Signal: "SIGABRT", SignalNumber: 6, Why: "killed by SIGABRT: " + noThread, During: "during load"}},
		"no thread":            {"runtime: failed to create new OS thread (have 2 already; errno=11)\nruntime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n\nruntime stack:", usage, words("fatal error: newosproc: " + noThread)},
		"no memory":            {"runtime: out of memory: cannot allocate 12582912-byte block (20414464 in use)\nfatal error: out of memory" + stack, usage, words("fatal error: out of memory: " + noMemory)},
		"killed meanwhile":     {"panic: x" + stack, rendezvous.Exit{Signal: "SIGKILL", SignalNumber: 9}, rendezvous.Exit{Signal: "SIGKILL", SignalNumber: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			var c crash
			for line := range strings.Lines(tt.text) {
				c.line(strings.TrimSuffix(line, "\n"))
			}
			got := tt.was
			if c.explain(&got); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
