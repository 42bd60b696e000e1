package loader

import (
	"errors"
	"fmt"
	"math"
)

// State is a place in the stream of samples, for checkpoints (JSON). All ranks
// have the same, except that Quarantine lists only what this rank has met; a
// rank that meets the rest later gives it weight 0 all the same.
type State struct {
	Digest     string `json:"digest"`   // of the split
	Order      string `json:"order"`    // name and version of the order
	Seed       uint64 `json:"seed"`     // of the order
	Epoch      int64  `json:"epoch"`    // of the next sample
	Position   int64  `json:"position"` // samples of the epoch already given out
	Quarantine []int  `json:"quarantine"`
}

// State is where the next batch of Next begins, whatever was prefetched.
func (l *Loader) State() State {
	return State{
		Digest: l.src.Digest(), Order: l.order(), Seed: l.c.Seed,
		Epoch: l.at.epoch, Position: l.at.pos, Quarantine: l.fill.quarantine(),
	}
}

func (l *Loader) order() string {
	if l.c.Shuffle {
		return shuffledOrder
	}
	return sequentialOrder
}

// Restore moves the loader to s, which may come from a loader of another world
// size, batch or prefetch. Another data set, order or seed is an error, and the
// loader then stays as it was.
func (l *Loader) Restore(s State) error {
	if errors.Is(l.err, ErrClosed) {
		return ErrClosed
	}
	if err := l.check(s); err != nil {
		return fmt.Errorf("loader: cannot resume: %w", err)
	}
	l.halt()
	l.fill = newFiller(l.src, l.c)
	for _, b := range s.Quarantine {
		l.fill.setBad(b)
	}
	l.at, l.err = cursor{s.Epoch, s.Position}, nil
	if l.c.Tail == Drop && s.Position+int64(l.c.Batch) > l.src.Len() { // saved with a smaller batch
		l.at = cursor{s.Epoch + 1, 0}
	}
	return nil
}

func (l *Loader) check(s State) error {
	switch {
	case s.Digest != l.src.Digest():
		return fmt.Errorf("the state is of the data set %s, but this one is %s; give the same data (same pictures, crop, size and split)", s.Digest, l.src.Digest())
	case s.Order != l.order():
		return fmt.Errorf("the state's order is %q, but this one is %q", s.Order, l.order())
	case s.Seed != l.c.Seed:
		return fmt.Errorf("the state's seed is %d, but this one is %d; give the same seed", s.Seed, l.c.Seed)
	case s.Epoch < 0 || s.Epoch > math.MaxUint32-2 || s.Position < 0 || s.Position >= l.src.Len():
		return fmt.Errorf("epoch %d, position %d, expected a position from 0 to %d", s.Epoch, s.Position, l.src.Len()-1)
	}
	for _, b := range s.Quarantine {
		if b < 0 || b >= len(l.fill.spans) {
			return fmt.Errorf("quarantined block %d, expected 0 to %d", b, len(l.fill.spans)-1)
		}
	}
	return nil
}
