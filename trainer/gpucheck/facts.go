package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	driver "ebtrain/collective/cuda"
)

// facts are what the programs take for granted of the driver and no header says: each is
// tried by itself, in milliseconds, so that what fails has a name.
var facts = []struct {
	name string
	try  func(l *lab) error
}{
	{"a kernel adds, and the driver says how long its argument is", (*lab).adds},
	{"pinned memory is set from a stream, alone and captured", (*lab).setsPinned},
	{"streams fork and join by events in a capture, which is replayed", (*lab).forks},
	{"timed events that a graph records can be read", (*lab).timesGraph},
	{"another thread allocates, loads and waits while one captures", (*lab).besideCapture},
	{"a call that waits spoils a capture, and the stream serves afterwards", (*lab).spoils},
	{"a graph that runs may be closed", (*lab).closesRunning},
	{"freeing memory waits for what uses it", (*lab).freesUsed},
	{"freeing pinned memory waits for what uses it", (*lab).freesUsedPinned},
}

// tryFacts is a check of part a for each.
func tryFacts(ctx context.Context, r *report) (err error) {
	for _, f := range facts {
		err = errors.Join(err, r.do(ctx, "a", f.name, func() (string, map[string]any, error) {
			l, err := openLab(ctx, r.Devices[0].Ordinal)
			if err == nil {
				err = f.try(l)
			}
			return "", nil, errors.Join(err, l.close())
		}))
	}
	return err
}

// lab is a device with a kernel that adds to 32 words, and memory for it.
type lab struct {
	ctx    context.Context
	d      *driver.Device
	m      *driver.Module
	add    driver.Function
	s      [2]*driver.Stream
	e      [2]*driver.Event
	timed  [2]*driver.Event
	words  driver.Ptr
	pinned *driver.Pinned
}

const labBytes = 128

// labSource is compiled by NVRTC, and by the doubles' compiler with words of their own.
const labSource = `#ifndef SHIM
typedef unsigned int u32;
typedef unsigned long long u64;
#define KERNEL(NAME, BLOCK, ARGS) extern "C" __global__ void __launch_bounds__(BLOCK) NAME(const ARGS a)
#define TID ((int)threadIdx.x)
#endif
typedef struct {
	u64 at;
	u32 by, n;
	u64 more[3];
} arguments;
KERNEL(add, 32, arguments) {
	if (TID < (int)a.n)
		((u32 *)a.at)[TID] += a.by;
}
`

func openLab(ctx context.Context, ordinal int) (l *lab, err error) {
	l = &lab{ctx: ctx}
	if l.d, err = driver.OpenDevice(ordinal); err != nil {
		return l, err
	}
	image, err := l.d.Compile("lab", labSource, driver.CompileOptions{})
	if err != nil {
		return l, err
	}
	if l.m, err = l.d.Load(image); err != nil {
		return l, err
	}
	if l.add, err = l.m.Function("add"); err != nil {
		return l, err
	}
	for i := range l.s {
		var errs [3]error
		l.s[i], errs[0] = l.d.NewStream(fmt.Sprintf("lab %d", i), 0)
		l.e[i], errs[1] = l.d.NewEvent(false)
		l.timed[i], errs[2] = l.d.NewEvent(true)
		if err := errors.Join(errs[:]...); err != nil {
			return l, err
		}
	}
	if l.words, err = l.d.Alloc(labBytes); err != nil {
		return l, err
	}
	if l.pinned, err = l.d.AllocPinned(labBytes); err != nil {
		return l, err
	}
	return l, errors.Join(l.s[0].Memset(l.words, 0, labBytes), l.s[0].Sync(ctx))
}

func (l *lab) close() error {
	var errs []error
	if l.pinned != nil {
		errs = append(errs, l.pinned.Free())
	}
	if l.d != nil {
		errs = append(errs, l.d.Free(l.words))
	}
	for _, e := range slices.Concat(l.e[:], l.timed[:]) {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	for _, s := range l.s {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if l.m != nil {
		errs = append(errs, l.m.Close())
	}
	if l.d != nil {
		errs = append(errs, l.d.Close())
	}
	return errors.Join(errs...)
}

// plus queues an addition to all words.
func (l *lab) plus(s *driver.Stream, by uint32) error {
	args := make([]byte, 40)
	binary.LittleEndian.PutUint64(args, uint64(l.words))
	binary.LittleEndian.PutUint32(args[8:], by)
	binary.LittleEndian.PutUint32(args[12:], labBytes/4)
	return s.Launch(l.add, 1, 32, 0, args)
}

// want is nil if all words are that.
func (l *lab) want(w uint32) error {
	if err := errors.Join(l.s[0].CopyOut(l.pinned, 0, l.words, labBytes), l.s[0].Sync(l.ctx)); err != nil {
		return err
	}
	for i := range labBytes / 4 {
		if got := binary.LittleEndian.Uint32(l.pinned.Bytes()[4*i:]); got != w {
			return fmt.Errorf("word %d is %d, want %d", i, got, w)
		}
	}
	return nil
}

// captured is what f puts onto the first stream, as a graph that can be launched; it is
// closed after use.
func (l *lab) captured(f func() error, use func(*driver.Exec) error) error {
	return l.d.Do(func() error {
		if err := l.s[0].BeginCapture(); err != nil {
			return err
		}
		err := f()
		g, ended := l.s[0].EndCapture()
		if err = errors.Join(err, ended); err != nil {
			return err
		}
		e, err := g.Instantiate()
		if err == nil {
			err = errors.Join(use(e), e.Close())
		}
		return errors.Join(err, g.Close())
	})
}

func (l *lab) adds() error {
	err := errors.Join(l.plus(l.s[0], 3), l.plus(l.s[0], 4), l.want(7))
	if short := l.s[0].Launch(l.add, 1, 32, 0, make([]byte, 32)); short == nil {
		err = errors.Join(err, errors.New("a launch with 32 bytes of an argument of 40 is not refused: this driver does not say how long arguments are"))
	}
	return err
}

func (l *lab) setsPinned() error {
	word := func(want uint32) error {
		if err := l.s[0].Sync(l.ctx); err != nil {
			return err
		}
		if got := binary.LittleEndian.Uint32(l.pinned.Bytes()); got != want {
			return fmt.Errorf("pinned memory holds %d, want %d", got, want)
		}
		return nil
	}
	if err := errors.Join(l.s[0].Memset32(l.pinned.Ptr(), 5, 1), word(5)); err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	err := l.captured(func() error { return l.s[0].Memset32(l.pinned.Ptr(), 6, 1) }, func(e *driver.Exec) error {
		return errors.Join(e.Launch(l.s[0]), word(6))
	})
	if err != nil {
		return fmt.Errorf("captured: %w", err)
	}
	return nil
}

func (l *lab) forks() error {
	return l.captured(func() error {
		return errors.Join(l.plus(l.s[0], 1), l.s[1].Wait(l.s[0], l.e[0]), l.plus(l.s[1], 1), l.s[0].Wait(l.s[1], l.e[1]), l.plus(l.s[0], 1))
	}, func(e *driver.Exec) error {
		return errors.Join(e.Upload(l.s[0]), e.Launch(l.s[0]), e.Launch(l.s[0]), l.want(6))
	})
}

func (l *lab) timesGraph() error {
	return l.captured(func() error {
		return errors.Join(l.s[0].RecordExternal(l.timed[0]), l.plus(l.s[0], 1), l.s[0].RecordExternal(l.timed[1]))
	}, func(e *driver.Exec) error {
		for range 2 {
			if err := errors.Join(e.Launch(l.s[0]), l.s[0].Sync(l.ctx)); err != nil {
				return err
			}
			if took, err := l.d.Elapsed(l.timed[0], l.timed[1]); err != nil || took < 0 {
				return fmt.Errorf("between the events are %v: %w", took, err)
			}
		}
		return nil
	})
}

func (l *lab) besideCapture() error {
	return l.captured(func() error {
		other := make(chan error, 1)
		go func() {
			p, err := l.d.Alloc(1 << 20)
			if err == nil {
				err = l.d.Free(p)
			}
			image, compileErr := l.d.Compile("lab", labSource, driver.CompileOptions{})
			if err = errors.Join(err, compileErr); err == nil {
				var m *driver.Module
				if m, err = l.d.Load(image); err == nil {
					_, err = m.Function("add")
					err = errors.Join(err, m.Close())
				}
			}
			other <- errors.Join(err, l.s[1].Memset(l.words+64, 0, 4), l.s[1].Sync(l.ctx), l.s[1].Record(l.e[1]), l.e[1].Sync(l.ctx))
		}()
		return errors.Join(<-other, l.plus(l.s[0], 2))
	}, func(e *driver.Exec) error { return errors.Join(e.Launch(l.s[0]), l.want(2)) })
}

func (l *lab) spoils() error {
	return l.d.Do(func() error {
		if err := l.s[0].BeginCapture(); err != nil {
			return err
		}
		forbidden := l.s[0].Sync(context.Background())
		g, ended := l.s[0].EndCapture()
		if g != nil {
			ended = errors.Join(ended, g.Close())
		}
		if forbidden == nil || ended == nil {
			return fmt.Errorf("a wait in a capture gives %v, and its end %v: want errors", forbidden, ended) //nolint:errorlint // one of them is nil
		}
		return errors.Join(l.plus(l.s[0], 9), l.want(9))
	})
}

// thousand has a graph of a thousand additions.
func (l *lab) thousand(use func(*driver.Exec) error) error {
	return l.captured(func() error {
		for range 1000 {
			if err := l.plus(l.s[0], 1); err != nil {
				return err
			}
		}
		return nil
	}, use)
}

func (l *lab) closesRunning() error {
	err := l.thousand(func(e *driver.Exec) error { return e.Launch(l.s[0]) })
	return errors.Join(err, l.want(1000))
}

func (l *lab) freesUsed() error {
	p, err := l.d.Alloc(labBytes)
	if err != nil {
		return err
	}
	return l.waits(func() error { return l.s[0].Memset(p, 1, labBytes) }, func() error { return l.d.Free(p) })
}

func (l *lab) freesUsedPinned() error {
	p, err := l.d.AllocPinned(labBytes)
	if err != nil {
		return err
	}
	return l.waits(func() error { return l.s[0].CopyOut(p, 0, l.words, labBytes) }, p.Free)
}

// waits says whether free waits for what use puts behind a thousand additions.
func (l *lab) waits(use, free func() error) error {
	return l.thousand(func(e *driver.Exec) error {
		if err := errors.Join(e.Launch(l.s[0]), use(), l.s[0].Record(l.e[0]), free()); err != nil {
			return err
		}
		over, err := l.e[0].Query()
		if err == nil && !over {
			err = errors.New("it returns while the memory is still used: what frees must wait itself")
		}
		return errors.Join(err, l.s[0].Sync(l.ctx))
	})
}
