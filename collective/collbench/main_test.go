package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
)

func isUsage(err error) bool {
	_, ok := errors.AsType[*cliflag.UsageError](err)
	return ok
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the error; "" means that all is well
	}{
		{"", ""},
		{"-nproc 4", ""},
		{"--nproc=4 -max_time=1s --max-time 2s", ""},
		{"-collective all-gather -dtype bf16 -memory ordinary -json file", ""},
		{"--max 64MB", ""},
		{"--max 1GiB --network tcp", ""},
		{"-nproc 0", "--nproc is 0, expected 2 to 256"},
		{"-nproc 1", "--nproc is 1, expected at least 2: one rank has nobody"},
		{"-nproc x", `--nproc "x": want a whole number`},
		{"-hosts 3", "--hosts is 3, expected 1 to 2"},
		{"-hosts 2 -network tcp", "--hosts 2 and --network tcp, which makes each rank a host: give one of them"},
		{"-hosts 2 -network namespaces", "--hosts 2 and --network namespaces, which makes"},
		{"-network namespaces -nproc 4", ""},
		{"-network udp", `--network is "udp", expected auto, tcp or namespaces`},
		{"-sizes 4Q", `--sizes: "4Q" is not a size, expected bytes from 1 to 16G, such as 256K or 64MB`},
		{"-sizes 99G", `"99G" is not a size`},
		{"-sizes 4K,", `"" is not a size`},
		{"-max lots", `--max: "lots" is not a size`},
		{"-max MB", `--max: "MB" is not a size`},
		{"-max 64BB", `--max: "64BB" is not a size`},
		{"-max -1", `--max: "-1" is not a size`},
		{"-max 4", "--max is 4, expected at least 8 bytes"},
		{"-max 4K -sizes 8", "--max 4K and --sizes 8: give one of them"},
		{"-dtype i32", `--dtype is "i32"`},
		{"-collective gather", `--collective is "gather"`},
		{"-memory none", `--memory is "none"`},
		{"-iters 0", "--iters is 0"},
		{"-max-time -1s", "--max-time is -1s"},
		{"-unknown", "unknown"},
		{"-peers bin --rounds 3 --network tcp -nproc 4 --sizes 4K", ""},
		{"-rounds 3", "--rounds 3 is for --peers"},
		{"-peers bin -rounds 0", "--rounds is 0, expected at least 1"},
		{"-peers bin -dtype bf16", "--peers times all-reduces of f32 only, not --collective all-reduce of --dtype bf16"},
		{"-peers bin -memory ordinary", "--peers prints a table of both kinds of memory"},
		{"-peers bin -json file", "--peers prints a table of both kinds of memory"},
		{"-predict file -dtype bf16", "--predict is for all-reduces of f32 in alloc memory"},
		{"-predict file -memory ordinary", "--predict is for all-reduces of f32 in alloc memory"},
		{"extra", `unexpected argument "extra"`},
	} {
		_, err := parse(strings.Fields(test.args), io.Discard)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%q: %v", test.args, err)
		case test.want != "" && (!isUsage(err) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%q: got error %v, want a usage error with %q", test.args, err, test.want)
		}
	}
	if _, err := parse([]string{"-help"}, io.Discard); !errors.Is(err, cliflag.ErrHelp) {
		t.Errorf("-help: got %v", err)
	}
}

func TestSizes(t *testing.T) {
	for args, want := range map[string]string{
		"--max 100":             "[8 16 32 64 100]",
		"--max 1kb":             "[8 16 32 64 128 256 512 1024]",
		"--sizes 1,2K,3M,4MiB":  "[1 2048 3145728 4194304]",
		"--sizes=1G --nproc 3":  "[1073741824]",
		"-sizes 64B,1iB -nproc": "",
	} {
		opt, err := parse(strings.Fields(args), io.Discard)
		if got := fmt.Sprint(opt.sizes); want != "" && (err != nil || got != want) || want == "" && err == nil {
			t.Errorf("%s: got %s, %v, want %s", args, got, err, want)
		}
	}
	opt, err := parse([]string{"--max", "64"}, io.Discard)
	if got := fmt.Sprint(opt.whole(3)); err != nil || got != "[12 24 36 72]" {
		t.Errorf("sizes of 3 ranks are %s, %v, want whole float32 for each, once", got, err)
	}
	if got := fmt.Sprint(opt.whole(5)); got != "[20 40 80]" {
		t.Errorf("sizes of 5 ranks are %s, want the 20 bytes that 8 and 16 come to once", got)
	}
}

// TestMeasure measures in this process, and demands that nothing is wrong and that
// what was written is what was measured.
func TestMeasure(t *testing.T) {
	for kind := range kinds {
		one := "f32" // of the types, by -short; another where all is measured
		if kind == "all-reduce" {
			one = "bf16"
		}
		for dtype := range dtypes {
			if testing.Short() && dtype != one {
				continue
			}
			file := filepath.Join(t.TempDir(), "report.json")
			opt, err := parse([]string{"-collective", kind, "-dtype", dtype, "-sizes", "10,40K,300K", "-max-time", "1ms", "-nproc", "3", "-json", file}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			out, err := measureHere(t, opt, nil)
			if err != nil || strings.Count(out, "     0\n") != 3 {
				t.Errorf("%s %s: %v, printed\n%s", kind, dtype, err, out)
			}
			r, err := cost.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if r.Collective != kind || r.Type != dtype || r.World != 3 || fmt.Sprint(r.Ranks) != "[3]" || len(r.Sizes) != 3 || r.Fit == nil || len(r.Fit.Residuals) != 3 {
				t.Errorf("%s %s: the report is %+v", kind, dtype, r)
			}
			if met := r.Meeting != nil && r.Meeting.Median > 0; met != (kind == "all-reduce") || met != strings.Contains(out, "us at least; small vectors\n") {
				t.Errorf("%s %s: the least of a barrier is %+v, printed\n%s", kind, dtype, r.Meeting, out)
			}
			for _, s := range r.Sizes {
				floor := s.Floor != nil && s.Floor.Median > 0 && s.FloorShare > 0
				least := s.Least != nil && s.Least.Median > 0 && s.LeastShare > 0
				if floor != (kind == "all-reduce") || least != (floor && s.Bytes <= leastBytes) || s.Stream != nil || s.Median < s.Best || s.Best <= 0 || s.Reps < 1 {
					t.Errorf("%s %s: size %+v", kind, dtype, s)
				}
				if floor && s.FloorShare != s.Floor.Median/s.Median || least && s.LeastShare != s.Least.Median/s.Median {
					t.Errorf("%s %s: shares of size %+v", kind, dtype, s)
				}
			}
		}
	}
}

// TestPredict fits a model to what was measured, and prints it beside another run.
func TestPredict(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.json")
	run := func(more ...string) (string, error) {
		opt, err := parse(append([]string{"-sizes", "64,4K,40K,300K,2M", "-max-time", "2ms", "-nproc", "2"}, more...), io.Discard)
		if err != nil {
			return "", err
		}
		return measureHere(t, opt, nil)
	}
	if out, err := run("-json", file); err != nil {
		t.Fatalf("%v, printed\n%s", err, out)
	}
	out, err := run("-predict", file)
	_, told, found := strings.Cut(out, "predicted us")
	if err != nil || !found || strings.Count(told, "\n") < 6 || !strings.Contains(told, "nothing was measured between hosts") {
		t.Errorf("%v, printed\n%s", err, out)
	}
	if _, err := parse([]string{"-predict", file, "-collective", "broadcast"}, io.Discard); !isUsage(err) || !strings.Contains(err.Error(), "--predict is for all-reduces") {
		t.Errorf("broadcasts are predicted: got error %v", err)
	}
	if _, err := foretell([]string{file + "x"}); err == nil || !strings.Contains(err.Error(), "--predict: ") {
		t.Errorf("a file that is not there: got error %v", err)
	}
}

// TestForetold: what is foretold is for the machines and processors of the report that it stands
// beside: of two hosts that share one processor each waits twice as long. Its error is that of
// what was foretold.
func TestForetold(t *testing.T) {
	told := foretold{model: cost.Model{Between: cost.Costs{Latency: cost.Interval{Value: 100}}}}
	for want, r := range map[string]cost.Report{
		"200.0        100.0    +100": {Machines: 1, CPUs: 1}, "100.0        100.0      +0": {Machines: 1, CPUs: 2},
		"100.0         50.0    +100": {Machines: 2, CPUs: 1}, "100.0        400.0     -75": {CPUs: 1},
	} {
		var median float64
		if _, err := fmt.Sscan(strings.Fields(want)[1], &median); err != nil {
			t.Fatal(err)
		}
		r.Ranks, r.Sizes = []int{1, 1}, []cost.Size{{Bytes: 4096, Times: cost.Times{Median: median}}}
		text, err := told.text(r)
		if err != nil || !strings.HasSuffix(text, "      4096        "+want+"\n") {
			t.Errorf("%d machines of %d processors: %v, printed\n%s\nwant %s", r.Machines, r.CPUs, err, text, want)
		}
	}
}

// TestFits: each of the three lines is that of its own times, of the sizes that have some.
func TestFits(t *testing.T) {
	var sizes []cost.Size
	for _, bytes := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 22} {
		times := func(latency float64) cost.Times { return cost.Times{Median: latency + 1e-3*float64(bytes)} }
		floor, stream := times(20), times(30)
		s := cost.Size{Bytes: bytes, Times: times(10), Floor: &floor}
		if bytes > 1<<10 {
			s.Stream = &stream
		}
		sizes = append(sizes, s)
	}
	all, floor, stream := fits(sizes)
	for i, line := range []*cost.Line{all, floor, stream} {
		if want := 10 * float64(1+i); line == nil || !(math.Abs(line.Latency.Value-want) <= 1e-3*want) || len(line.Residuals) != 4-i/2 {
			t.Errorf("line %d is %+v, want a latency of %v us", i, line, want)
		}
	}
}

// TestWrongs: elements that are wrong in any size are counted, and an error.
func TestWrongs(t *testing.T) {
	comms, err := host.NewLocal(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = comms[0].Close() }()
	p := place{Comm: comms[0]}
	if err := wrongs(p, cost.Report{Sizes: []cost.Size{{Wrong: 2}, {Wrong: 5}, {}}}); err == nil || !strings.Contains(err.Error(), "7 elements were wrong") {
		t.Errorf("got error %v, want one of 7 elements", err)
	}
	if err := wrongs(p, cost.Report{Sizes: []cost.Size{{}, {}}}); err != nil {
		t.Errorf("got error %v where nothing was wrong", err)
	}
}

// TestWritable: whether a report can be written is known before, and until then nothing is
// made and nothing lost.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	comms, err := host.NewLocal(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = comms[0].Close() }()
	writable := func(file string) error {
		_, err := filesOf(place{Comm: comms[0]}, options{json: file})
		return err
	}
	if err := writable(file); err != nil {
		t.Errorf("a file that can be made: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made before anything was measured (%v)", err)
	}
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writable(file); err != nil {
		t.Errorf("a file that is there: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before" {
		t.Errorf("the file that was there has %q, %v", text, err)
	}
	for _, odd := range []string{dir, filepath.Join(dir, "none", "report.json")} {
		if err := writable(odd); err == nil || !strings.HasPrefix(err.Error(), "--json "+odd+": ") {
			t.Errorf("%s can be written: %v", odd, err)
		}
	}
}

// TestWrong spoils every result of one rank and demands that it is found.
func TestWrong(t *testing.T) {
	for kind := range kinds {
		opt, err := parse([]string{"-collective", kind, "-sizes", "4K", "-max-time", "1ms", "-nproc", "2"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		out, err := measureHere(t, opt, func(c collective.Comm) collective.Comm { return spoiler{c} })
		if err == nil || !strings.Contains(err.Error(), "elements were wrong") {
			t.Errorf("%s: got error %v, printed\n%s", kind, err, out)
		}
	}
}

// spoiler adds one to an element of every result.
type spoiler struct{ collective.Comm }

func (s spoiler) Start(req collective.Request) collective.Pending {
	p := s.Comm.Start(req)
	if req.Vec.Type == collective.F32 {
		if err := p.Wait(context.Background()); err != nil {
			return p
		}
		x := (*float32)(unsafe.Add(req.Vec.Ptr, s.Rank()*req.Vec.Len/s.Size()*req.Vec.Type.Size()))
		*x *= 1.5
	}
	return p
}

func measureHere(t *testing.T, opt options, wrap func(collective.Comm) collective.Comm) (string, error) {
	t.Helper()
	comms, err := host.NewLocal(t.Context(), opt.nproc)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer // rank 0 only prints
	errs := make(chan error, opt.nproc)
	for _, c := range comms {
		go func() {
			var comm collective.Comm = c
			if wrap != nil && c.Rank() == 1 {
				comm = wrap(c)
			}
			errs <- measureAll(t.Context(), place{Comm: comm, host: c, cores: runtime.NumCPU(), listenIP: loopback}, opt, &out)
		}()
	}
	var first error
	for range comms {
		select {
		case err := <-errs:
			if err != nil && first == nil {
				first = err
			}
		case <-time.After(5 * time.Minute): // under the race detector on busy processors, one took more than one
			debug.SetTraceback("all")
			panic("no end: where everybody is follows")
		}
	}
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	return out.String(), first
}
