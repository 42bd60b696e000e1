package loader

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/data"
)

func TestDamageFailsOrIsQuarantined(t *testing.T) {
	src := source()
	src.bad[2] = true // samples 16 to 23
	l, err := New(src, Config{Batch: 8, Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	for range 2 {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := l.State()
	for range 2 { // the error stays
		_, err = l.Next(t.Context())
		if _, ok := errors.AsType[*data.CorruptError](err); !ok || !strings.Contains(err.Error(), "samples 16 to 23") {
			t.Fatalf("error %v, want the damaged samples named", err)
		}
	}
	if got := l.State(); !reflect.DeepEqual(got, before) {
		t.Errorf("the failed batch moved the state from %+v to %+v", before, got)
	}

	var named atomic.Int64
	c := Config{Batch: 8, World: 2, Prefetch: 1, Tail: Mask, Passes: 1}
	c.Quarantine = func(*data.CorruptError) { named.Add(1) }
	items := global(t, src, c, nil, 2, nil) // before the block: nothing yet
	var states []State
	c.World = 1
	items = append(items, global(t, src, c, &before, 99, &states)...)
	lost := 0
	for _, it := range items {
		if it.Weight == 0 && it.Index >= 0 {
			lost++
			if it.Index < 16 || it.Index > 23 {
				t.Errorf("sample %d is lost", it.Index)
			}
		}
	}
	if got := states[len(states)-1].Quarantine; lost != 8 || !slices.Equal(got, []int{2}) {
		t.Errorf("%d samples have weight 0, quarantine %v; want 8 and [2]", lost, got)
	}
	if len(items) != 104 {
		t.Errorf("%d slots, want 104: the number of steps must not change", len(items))
	}
	s := states[len(states)-1]
	s.Epoch, s.Position = 0, 16
	if items := global(t, source(), c, &s, 1, nil); items[0].Weight != 0 { // once in quarantine, out for good
		t.Error("a restored quarantine is forgotten")
	}
}

func TestCanceledNextMissesNothing(t *testing.T) {
	src := source()
	src.delay = 20 * time.Millisecond
	c := base()
	c.Prefetch = 1
	want := global(t, source(), c, nil, 6, nil)
	l, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	var got []int64
	for len(got) < len(want) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		b, err := l.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Indices...)
	}
	for i, v := range got {
		if v != want[i].Index {
			t.Fatalf("sample %d is %d, want %d", i, v, want[i].Index)
		}
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 20 {
		c := base()
		c.Prefetch = 4
		l, err := New(source(), c)
		if err != nil {
			t.Fatal(err)
		}
		for range i % 5 {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("next after close: %v", err)
		}
	}
	// Close has waited for the goroutines' functions; the runtime may need a
	// moment more to forget them.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// tableless is a source whose first shard has lost its seek table.
type tableless struct{ *fake }

func (s tableless) ReadBlock(i int, dst *data.Block) error {
	if span := s.Layout().Spans()[i]; span.Shard == 0 {
		return &data.CorruptError{File: "shard-00000", Frame: -1, Offset: -1, N: s.Layout().Shards[0], Err: errors.New("no seek table")}
	}
	return s.fake.ReadBlock(i, dst)
}

// What costs a whole shard is told of once, and all its blocks are left out.
func TestLostShardIsToldOnce(t *testing.T) {
	told := 0
	c := base()
	c.Tail, c.Quarantine = Carry, func(*data.CorruptError) { told++ }
	l, err := New(tableless{source()}, c)
	if err != nil {
		t.Fatal(err)
	}
	for range l.Steps() {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if lost := l.Damaged(); told != 1 || !slices.Equal(lost, []int{0, 1, 2, 3, 4}) {
		t.Errorf("told %d times of the blocks %v, want once of the first 5", told, lost)
	}
}
