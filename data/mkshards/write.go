package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ebtrain/data/atomicfile"
	"ebtrain/data/importer"
	"ebtrain/data/shard"
	"ebtrain/launch/progressbar"
)

// run imports what args name.
func (c command) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	fs := c.flagSet(&s)
	if helped, err := parse(fs, c.text, args, stdout); helped || err != nil {
		return err
	}
	if err := c.check(fs, &s); err != nil {
		return err
	}
	start := time.Now()
	x, err := c.write(ctx, &s, stderr)
	if err != nil {
		return err
	}
	if err := describe(stdout, s.run.Out, x); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "written in %.1f s\n", time.Since(start).Seconds())
	return err
}

// grace is how long an import that is to stop may take to tidy up.
const grace = 300 * time.Millisecond

// write writes the data set. When ctx ends it ends too: soon, in the middle of
// whatever does not come back, say a read from a server that is gone, if it
// must. Then the process is expected to end.
func (c command) write(ctx context.Context, s *settings, stderr io.Writer) (*shard.Index, error) {
	temporary := make(chan string, 1)
	s.run.Began = func(dir string) { temporary <- dir }
	type result struct {
		x   *shard.Index
		err error
	}
	done := make(chan result, 1)
	go func() {
		x, err := c.convert(ctx, s, stderr)
		done <- result{x, err}
	}()
	select {
	case r := <-done:
		return r.x, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		if r.err == nil { // it was just complete
			return r.x, nil
		}
		return nil, context.Cause(ctx)
	case <-time.After(grace):
	}
	select {
	case dir := <-temporary:
		return nil, errors.Join(context.Cause(ctx), removeSoon(dir))
	default:
		return nil, context.Cause(ctx)
	}
}

// removeSoon removes the folder of an import that does not end. What cannot be
// removed at once, the next import removes.
func removeSoon(dir string) error {
	done := make(chan error, 1)
	go func() {
		err := atomicfile.RemoveAll(dir)
		for range 3 { // something may just have been written
			if err != nil {
				err = atomicfile.RemoveAll(dir)
			}
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(grace / 2):
		return fmt.Errorf("%s is still being written; the next import there removes it", dir)
	}
}

// convert opens the originals and writes the data set.
func (c command) convert(ctx context.Context, s *settings, stderr io.Writer) (x *shard.Index, err error) {
	m := progressbar.NewPhases(stderr)
	defer m.End()
	s.progress = func(phase string, done, total int64) { m.Progress(phase, c.unit(), done, total) }
	set, err := c.open(ctx, s)
	m.End()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, n := range set.Notes {
		if _, err := fmt.Fprintln(stderr, n); err != nil {
			return nil, err
		}
	}
	s.run.Progress = s.progress
	skipped := 0
	s.run.Bad = func(b shard.Skipped) {
		if skipped++; skipped <= maxNamed {
			m.Line(fmt.Sprintf("skipped %s: %s", b.Name, b.Why))
		}
	}
	x, err = importer.Run(ctx, set, s.run)
	if skipped > maxNamed {
		m.Line(fmt.Sprintf("skipped %d more", skipped-maxNamed))
	}
	return x, err
}

// unit is what is counted each second.
func (c command) unit() string {
	switch c.name {
	case sentences().name:
		return "lines/s"
	case tableName:
		return "rows/s"
	}
	return "images/s"
}
