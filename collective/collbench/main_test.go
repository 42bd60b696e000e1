package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
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
		{"-collective all-gather -dtype bf16 -memory ordinary -json", ""},
		{"-nproc 0", "--nproc is 0, expected 1 to 256"},
		{"-nproc x", `--nproc "x": want a whole number`},
		{"-hosts 3", "--hosts is 3, expected 1 to 2"},
		{"-sizes 4Q", `size "4Q"`},
		{"-sizes 99G", `size "99G"`},
		{"-sizes 4K,", `size ""`},
		{"-dtype i32", `--dtype is "i32"`},
		{"-collective gather", `--collective is "gather"`},
		{"-memory none", `--memory is "none"`},
		{"-iters 0", "--iters is 0"},
		{"-max-time -1s", "--max-time is -1s"},
		{"-unknown", "unknown"},
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

// TestMeasure measures in this process, and demands that nothing is wrong.
func TestMeasure(t *testing.T) {
	for kind := range kinds {
		for dtype := range dtypes {
			opt, err := parse([]string{"-collective", kind, "-dtype", dtype, "-sizes", "10,40K,300K", "-max-time", "1ms", "-nproc", "3", "-json"}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			out, err := measureHere(t, opt, nil)
			if err != nil || strings.Count(out, `"correct":true`) != 3 {
				t.Errorf("%s %s: %v, printed\n%s", kind, dtype, err, out)
			}
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
		b := bench{req: req}
		i := s.Rank() * req.Vec.Len / s.Size()
		b.put(i, b.get(i)*1.5)
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
			errs <- measureAll(t.Context(), comm, opt, &out)
		}()
	}
	var first error
	for range comms {
		select {
		case err := <-errs:
			if err != nil && first == nil {
				first = err
			}
		case <-time.After(time.Minute):
			t.Fatal("no end")
		}
	}
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	return out.String(), first
}
