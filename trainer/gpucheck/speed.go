package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/graph"
)

// speed is part d.
func speed(ctx context.Context, o *options, r *report) error {
	const copies, bytesKey, flopsKey = "copies inside the GPU's memory", "read_and_written_tb_s", "tflop_s"
	err := r.do(ctx, "d", copies, func() (string, map[string]any, error) {
		rate, err := copyRate(r.Devices[0].Ordinal, o.size.Copied)
		return "", map[string]any{bytesKey: rate / 1e12}, err
	})
	m := &rates{bytes: 1e12 * r.found(copies, bytesKey)}
	for _, p := range []cuda.Precision{cuda.BF16, cuda.TF32, cuda.F32} {
		name := fmt.Sprintf("product of %d² random matrices in %v", o.size.Product, p)
		err = errors.Join(err, r.do(ctx, "d", name, func() (string, map[string]any, error) {
			rate, err := productRate(r.Devices[0].Ordinal, o.size.Product, p)
			return "", map[string]any{flopsKey: rate / 1e12}, err
		}))
		m.flops[p] = 1e12 * r.found(name, flopsKey)
	}
	python := sync.OnceValues(func() (string, error) { return torch(ctx, o) })
	err = errors.Join(err, fewChannels(ctx, o, r), fused(ctx, r, m, o.size.Fused), placed(ctx, r, o.size.Placed))
	for _, net := range o.nets {
		for _, batch := range o.batches {
			for _, p := range []cuda.Precision{cuda.BF16, cuda.TF32, cuda.F32} {
				if !slices.Contains(o.only, p.String()) {
					continue
				}
				w := workload{Net: net, Width: o.size.Width, Batch: batch, Fresh: true, Still: true}
				c := cuda.Config{Precision: p, Lanes: o.lanes}
				err = errors.Join(err, r.do(ctx, "d", fmt.Sprintf("%v in %v", w, p), func() (string, map[string]any, error) {
					return timed(ctx, o, w, c, m)
				}))
				if c.Body = o.body; c.Body {
					err = errors.Join(err, r.do(ctx, "d", fmt.Sprintf("%v in %v, the body of a node", w, p), func() (string, map[string]any, error) {
						return timed(ctx, o, w, c, m)
					}))
				}
			}
			err = errors.Join(err, peers(ctx, o, r, net, batch, python))
		}
	}
	return err
}

// captured is a program that says how many operations its graph has, and what it takes
// the host to replay it.
type captured interface {
	GraphNodes() int
	ReplayTime() time.Duration
	Embodied() bool
}

// timed times a workload. One that is the body of a node has no profile, as that is of its
// launches.
func timed(ctx context.Context, o *options, w workload, c cuda.Config, m *rates) (text string, numbers map[string]any, err error) {
	p, said := c.Precision, &said{}
	c.Say = said.say
	s, err := open(ctx, w, openGPU(c), nil)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	list, queued, err := s.times(ctx, o.steps)
	if err != nil {
		return "", nil, err
	}
	st, took := s.step.Stats(), mean(list)
	numbers = map[string]any{
		"ms": took, "inputs_us": median(queued) * 1e3, "images_per_s": float64(w.Batch) / took * 1e3, "start_s": s.cold.Seconds(), "launches": st.Steps,
		"intermediate_mib": float64(st.PeakBytes) / (1 << 20), "variables_mib": float64(st.VarBytes) / (1 << 20),
	}
	numbers["device"] = s.be.Name()
	if c, ok := s.step.(captured); ok {
		numbers["graph_nodes"], numbers["replay_us"] = c.GraphNodes(), float64(c.ReplayTime())/float64(time.Microsecond)
	}
	flops, bytes, err := s.work(ctx)
	if e := m.estimate(flops, bytes, p); e > 0 {
		numbers["estimated_ms"], numbers["share_of_estimate"] = e, e/took
	}
	switch {
	case err != nil:
	case c.Body:
		err = s.embodied(said)
	default:
		text, err = s.profile(ctx, filepath.Join(o.out, strings.ReplaceAll(fmt.Sprintf("%v %v.tsv", w, p), " ", "-")))
	}
	return text, numbers, err
}

// rates are what the machine does, as measured here; 0 where it was not.
type rates struct {
	bytes float64    // copied, read and written, a second
	flops [3]float64 // of products, a second, by precision
}

// estimate is what a good step takes, in milliseconds: its convolutions and products at the
// rate of large products, and all else at that of copies; 0 where one was not measured. A step
// can be quicker: the L2 cache still has what the kernel before has just written, and lanes
// read and write while others multiply.
func (m *rates) estimate(flops, bytes int64, p cuda.Precision) float64 {
	if m.bytes == 0 || m.flops[p] == 0 {
		return 0
	}
	return 1e3 * (float64(flops)/m.flops[p] + float64(bytes)/m.bytes)
}

// copyRate is how many bytes a second a copy reads and writes.
func copyRate(ordinal int, bytes int64) (rate float64, err error) {
	const times = 20
	d, err := driver.OpenDevice(ordinal)
	if err != nil {
		return 0, err
	}
	keep := func(f func() error) { err = errors.Join(err, f()) }
	defer func() { keep(d.Close) }()
	s, err := d.NewStream("copies", 0)
	if err != nil {
		return 0, err
	}
	defer func() { keep(s.Close) }()
	var marks [2]*driver.Event
	for i := range marks {
		if marks[i], err = d.NewEvent(true); err != nil {
			return 0, err
		}
		defer func() { keep(marks[i].Close) }()
	}
	var at [2]driver.Ptr
	for i := range at {
		if at[i], err = random(d, s, int(bytes/4), graph.F32); err != nil {
			return 0, err
		}
		defer func() { keep(func() error { return d.Free(at[i]) }) }()
	}
	for i := range times + 1 {
		if i == 1 { // the first is a warm-up
			if err := s.Record(marks[0]); err != nil {
				return 0, err
			}
		}
		if err := s.CopyDevice(at[1], at[0], bytes); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(s.Record(marks[1]), s.Sync(context.Background())); err != nil {
		return 0, err
	}
	took, err := d.Elapsed(marks[0], marks[1])
	return 2 * times * float64(bytes) / took.Seconds(), err
}

// peers times PyTorch on the same step, each mode a process with a time limit.
func peers(ctx context.Context, o *options, r *report, net string, batch int, python func() (string, error)) error {
	var err error
	for _, mode := range []string{"eager-bf16", "compile-bf16", "compile-bf16 --cudagraphs", "eager-tf32", "eager"} {
		err = errors.Join(err, r.do(ctx, "d", fmt.Sprintf("PyTorch, %s batch %d, %s", net, batch, mode), func() (string, map[string]any, error) {
			interpreter, err := python()
			if err != nil {
				return "", nil, err
			}
			return peer(ctx, o, interpreter, net, batch, mode)
		}))
	}
	return err
}

// torch is the python3 that can run the peer. To ask takes it some seconds.
func torch(ctx context.Context, o *options) (string, error) {
	if o.peer == "" {
		return "", fmt.Errorf("%w: no --peer was given", errSkipped)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("%w: there is no python3", errSkipped)
	}
	if _, err := os.Stat(o.peer); err != nil {
		return "", fmt.Errorf("%w: --peer %s: %w", errSkipped, o.peer, err)
	}
	if err := exec.CommandContext(ctx, python, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())").Run(); err != nil {
		return "", fmt.Errorf("%w: python3 has no torch that sees the GPU", errSkipped)
	}
	return python, nil
}

// peer times one mode, with its time limit.
func peer(ctx context.Context, o *options, python, net string, batch int, mode string) (string, map[string]any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, errors.New("it took longer than three minutes"))
	defer cancel()
	args := []string{filepath.Base(o.peer), "--model", net, "--batch", strconv.Itoa(batch), "--iters", strconv.Itoa(o.steps)}
	if name, ok := bytes.CutSuffix([]byte(mode), []byte(" --cudagraphs")); ok {
		args = append(args, "--modes", string(name), "--cudagraphs")
	} else {
		args = append(args, "--modes", mode)
	}
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Dir, cmd.WaitDelay = filepath.Dir(o.peer), 5*time.Second
	// PyTorch 2.11 expects gradients of weights of convolutions that cover the image in
	// another layout than cuDNN gives them, and ends over it.
	cmd.Env = append(os.Environ(), "TORCHINDUCTOR_SIZE_ASSERTS=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		text := errs.String()
		return text[max(0, len(text)-600):], nil, fmt.Errorf("%w: %w", errSkipped, err)
	}
	numbers, err := stepOf(out.String())
	return "", numbers, err
}

// stepOf is what the peer has printed of a step, a line of JSON. One with an error is of a mode
// that PyTorch could not run, which is no failure of ours.
func stepOf(printed string) (map[string]any, error) {
	for line := range strings.Lines(printed) {
		var numbers map[string]any
		switch {
		case json.Unmarshal([]byte(line), &numbers) != nil:
		case numbers["error"] != nil:
			return nil, fmt.Errorf("%w: the mode fails: %v", errSkipped, numbers["error"])
		case numbers["step_ms"] != nil:
			return numbers, nil
		}
	}
	return nil, fmt.Errorf("want a line of JSON with step_ms from --peer, got %q", printed[max(0, len(printed)-600):])
}
