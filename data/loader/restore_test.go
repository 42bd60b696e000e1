package loader

import (
	"errors"
	"io"
	"testing"
)

// A state from which one batch is still full gives that batch, and one that was saved with
// a smaller batch, from which none is, the next epoch's first.
func TestRestoreBeforeTheLastBatch(t *testing.T) {
	l, err := New(source(), Config{Batch: 8, Tail: Drop})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]cursor{93: {0, 93}, 94: {1, 0}} {
		s := l.State()
		s.Epoch, s.Position = 0, at
		if err := l.Restore(s); err != nil {
			t.Fatal(err)
		}
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := (cursor{b.Epoch, b.Position}); got != want {
			t.Errorf("from position %d of 101 the batch is that of %v, want %v", at, got, want)
		}
	}
}

// The end of the passes lasts until the loader is moved back, and no longer.
func TestRestoreAfterTheEnd(t *testing.T) {
	l, err := New(source(), Config{Batch: 101, Tail: Mask, Passes: 1})
	if err != nil {
		t.Fatal(err)
	}
	begin := l.State()
	for range 2 {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := l.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Fatalf("error %v, want the end", err)
			}
		}
		if err := l.Restore(begin); err != nil {
			t.Fatal(err)
		}
	}
}
