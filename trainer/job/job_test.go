package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"ebtrain/ddp/graph"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"done", nil, 0, ""},
		{"help", ErrHelp, 0, ""},
		{"failed", errors.New("no luck"), 1, "prog: no luck\n"},
		{"usage", Usage("want --n, got %d", 1), 2, "prog: want --n, got 1\n"},
		{"usage inside", fmt.Errorf("a: %w", Usage("b")), 2, "prog: a: b\n"},
		{"stopped", errors.Join(ErrStopped), 75, "prog: " + ErrStopped.Error() + "\n"},
		{"stopped and worse", errors.Join(ErrStopped, errors.New("disk full")), 1, "prog: " + ErrStopped.Error() + "; disk full\n"},
		{"several lines", errors.Join(errors.New("a"), errors.New("b\n")), 1, "prog: a; b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if code := Exit("prog", c.err, &b); code != c.code || b.String() != c.want {
				t.Errorf("got %d, %q, want %d, %q", code, b.String(), c.code, c.want)
			}
		})
	}
}

func TestParseFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-n 3", ""},
		{"--too_long=3", ""},
		{"-too-long 3", ""},
		{"-h", ErrHelp.Error()},
		{"-n x", `--n "x": want a whole number (see prog --help)`},
		{"more", `unexpected argument "more": every setting of prog is a flag (see prog --help)`},
	} {
		fs := pflag.NewFlagSet("prog", pflag.ContinueOnError)
		n := fs.Int("n", 0, "number")
		fs.IntVar(n, "too-long", 0, "same number")
		var out strings.Builder
		err := ParseFlags(fs, strings.Fields(c.args), &out, "help\n")
		if err == nil && (c.want != "" || *n != 3) || err != nil && err.Error() != c.want {
			t.Errorf("%q: got %v, n is %d, want %q", c.args, err, *n, c.want)
		}
		if help := strings.HasPrefix(out.String(), "help\n\nFlags:\n"); help != (c.args == "-h") {
			t.Errorf("%q: shows %q", c.args, out.String())
		}
	}
}

func TestDefaultThreads(t *testing.T) {
	for _, c := range []struct {
		omp  string
		want int // 0 for an error
	}{{"3", 3}, {" 2 ", 2}, {"4,2", 4}, {"0", 0}, {"-1", 0}, {"many", 0}, {"99999", 0}, {",2", 0}} {
		n, err := defaultThreads(c.omp, 2)
		if n != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("OMP_NUM_THREADS=%q: got %d, %v, want %d", c.omp, n, err, c.want)
		}
	}
	for _, ranks := range []int{0, 1, 1000} {
		if n, err := defaultThreads("", ranks); n < 1 || err != nil {
			t.Errorf("%d ranks: %d threads, %v", ranks, n, err)
		}
	}
}

func TestOpenBackend(t *testing.T) {
	for _, c := range []struct {
		device, precision string
		threads           int
		want              string // "" for no error
	}{
		{"auto", F32, 1, ""}, {"cpu", F32, 1, ""}, {"ref", F32, 0, ""},
		{"gpu", F32, 1, `unknown --device "gpu"`}, {"cpu", F32, -1, "want --threads"}, {"ref", F32, 1 << 20, "want --threads"},
		{"cpu", "f16", 1, `unknown --precision "f16": want one of f32, bf16`}, {"ref", BF16, 1, "--device ref computes in float32 only"},
	} {
		b, err := OpenBackend(c.device, c.precision, c.threads, 1)
		if err == nil {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s in %s with %d threads: %v, want %q", c.device, c.precision, c.threads, err, c.want)
		}
	}
}

// TestOpenBF16 wants a backend in bfloat16, or the reason and the way out.
func TestOpenBF16(t *testing.T) {
	b, err := OpenBackend("auto", BF16, 1, 1)
	if err != nil {
		if s := err.Error(); !strings.HasPrefix(s, "--precision bf16: cpu: no bf16: ") || !strings.HasSuffix(s, ": use --precision f32") {
			t.Errorf("got %v", err)
		}
		return
	}
	if !strings.Contains(b.Name(), "bf16") {
		t.Errorf("the backend is %s", b.Name())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheckMemory(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 1<<28)) // 1 GiB
	b.Output("y", b.Sum(x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkMemory(g, 2<<30, "--n"); err != nil {
		t.Error(err)
	}
	err = checkMemory(g, 2<<30-1, "--n")
	if want := "one value of the program, f32[268435456], takes 1.0 GiB, and this machine has 2.0 GiB of memory: choose a smaller --n"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestWarnings wants lines that are the same on all ranks.
func TestWarnings(t *testing.T) {
	var b strings.Builder
	log := slog.New(Warnings("prog", &b))
	log.Info("not shown")
	log.Warn("torn", "path", "a b")
	if want := "prog: level=WARN msg=torn path=\"a b\"\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestWorldOfOne has no launcher: a failure is its own, and nobody is waited
// for.
func TestWorldOfOne(t *testing.T) {
	w, err := JoinWorld(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Connect(t.Context(), slog.New(slog.DiscardHandler)); err != nil || w.Comm != nil {
		t.Errorf("a world of one has the comm %v, error %v", w.Comm, err)
	}
	ctx, cancel := w.Context(context.Background())
	failure := errors.New("no luck")
	if got := w.Fail(failure); got != failure {
		t.Errorf("got %v, want the failure as it was", got)
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestJoinWorldRefuses(t *testing.T) {
	for _, environ := range []string{"RANK=0", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "EBTRAIN_CONTROL_FD=3"} {
		if w, err := JoinWorld(t.Context(), strings.Fields(environ)); err == nil {
			t.Errorf("%s: accepted", environ)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
