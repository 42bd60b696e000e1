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
	Order      string `json:"order"`    // name and version of the order, which a loader that is restored takes over
	Seed       uint64 `json:"seed"`     // of the order
	Epoch      int64  `json:"epoch"`    // of the next sample
	Position   int64  `json:"position"` // samples of the epoch already given out
	Quarantine []int  `json:"quarantine"`
	// Waiting are, of sentences, how many before Position are not yet given out, by
	// bucket: the last ones of each.
	Waiting []int `json:"waiting,omitempty"`
	// Since are, of sentences, epoch and position of the oldest that waits, by bucket:
	// all of its bucket from there on wait. States of early versions do not say.
	Since [][2]int64 `json:"since,omitempty"`
	// Buckets are, of the sentences of each block in Quarantine, their buckets, a digit
	// each; "" if the block could not be read when the run began. Who goes on cannot
	// read them, and needs them for the same batches.
	Buckets map[int]string `json:"buckets,omitempty"`
}

// State is where the next batch of Next begins, whatever was prefetched.
func (l *Loader) State() State {
	s := State{
		Digest: l.src.Digest(), Order: l.fill.mixing.String(), Seed: l.c.Seed,
		Epoch: l.at.epoch, Position: l.at.pos, Quarantine: l.fill.quarantine(),
	}
	if b := l.fill.buckets; b != nil {
		s.Waiting = append(s.Waiting, l.at.waiting[:len(b.text.Edges)]...)
		for _, c := range l.at.since[:len(b.text.Edges)] {
			s.Since = append(s.Since, [2]int64{c.epoch, c.pos})
		}
		for _, block := range s.Quarantine {
			if s.Buckets == nil {
				s.Buckets = map[int]string{}
			}
			s.Buckets[block] = b.digits(l.fill.spans[block])
		}
	}
	return s
}

// Damaged lists the blocks that this rank has found damaged or was told of by
// Exclude or Restore, in order. Blocks is how many there are to choose from.
func (l *Loader) Damaged() []int { return l.fill.quarantine() }

// LeavesOut says whether damaged blocks are left out, by Config.Quarantine.
func (l *Loader) LeavesOut() bool { return l.c.Quarantine != nil }

// Blocks is the number of blocks of the data set.
func (l *Loader) Blocks() int { return len(l.fill.spans) }

// Exclude has this rank leave out blocks that another rank has found damaged.
// What was made ahead with one of them is made again.
func (l *Loader) Exclude(blocks []int) {
	for _, b := range blocks {
		if !l.fill.isBad(b) {
			l.halt()
			l.fill.setBad(b)
		}
	}
}

// Restore moves the loader to s, which may come from a loader of another world
// size, batch, prefetch or memory for shuffling, or from an earlier version:
// the order of s goes on. Another data set or seed is an error, and the loader
// then stays as it was.
func (l *Loader) Restore(s State) error {
	if errors.Is(l.err, ErrClosed) {
		return ErrClosed
	}
	m, err := l.check(s)
	if err != nil {
		return fmt.Errorf("loader: cannot resume: %w", err)
	}
	at := spot{cursor: cursor{s.Epoch, s.Position}}
	copy(at.waiting[:], s.Waiting)
	for k, c := range s.Since {
		at.since[k] = cursor{c[0], c[1]}
	}
	fill := newFiller(l.src, l.c, m, l.measured)
	if fill.buckets != nil {
		if err := fill.lineUp(s, at); err != nil {
			return fmt.Errorf("loader: cannot resume: %w", err)
		}
		at = fill.line.at
	}
	l.halt()
	l.fill = fill
	for _, b := range s.Quarantine {
		l.fill.setBad(b)
	}
	l.at, l.err = at, nil
	if fill.buckets == nil && l.c.Tail == Drop && s.Position+int64(l.c.Batch) > l.src.Len() { // saved with a smaller batch
		l.at = spot{cursor: cursor{s.Epoch + 1, 0}}
	}
	return nil
}

// lineUp has f go on from s, at a spot that s says, with sentences.
func (f *filler) lineUp(s State, at spot) (err error) {
	if f.buckets, err = f.buckets.as(s.Buckets, f.spans); err != nil {
		return err
	}
	if err := f.buckets.check(f.c); err != nil {
		return err
	}
	f.line, err = newLine(f, at)
	return err
}

// check finds the order of s.
func (l *Loader) check(s State) (mixing, error) {
	m, known := named(s.Order, l.c.Shuffle)
	switch {
	case s.Digest != l.src.Digest():
		return m, fmt.Errorf("the state is of the data set %s, but this one is %s; give the same data (same pictures, crop, size and split)", s.Digest, l.src.Digest())
	case !known:
		return m, fmt.Errorf("the state's order is %q, which this loader does not have; it would begin with %q", s.Order, l.fill.mixing)
	case s.Seed != l.c.Seed:
		return m, fmt.Errorf("the state's seed is %d, but this one is %d; give the same seed", s.Seed, l.c.Seed)
	case s.Epoch < 0 || s.Epoch > math.MaxUint32-2 || s.Position < 0 || s.Position >= l.src.Len() && !l.tails(s):
		return m, fmt.Errorf("epoch %d, position %d, expected a position from 0 to %d", s.Epoch, s.Position, l.src.Len()-1)
	}
	if err := l.checkSentences(s); err != nil {
		return m, err
	}
	for _, b := range s.Quarantine {
		if b < 0 || b >= len(l.fill.spans) {
			return m, fmt.Errorf("quarantined block %d, expected 0 to %d", b, len(l.fill.spans)-1)
		}
	}
	return m, nil
}

// checkSentences says what is wrong with the sentences that wait.
func (l *Loader) checkSentences(s State) error {
	if b := l.fill.buckets; b != nil && len(s.Waiting) != len(b.text.Edges) {
		return fmt.Errorf("the state has %d buckets, and the sentences have %d", len(s.Waiting), len(b.text.Edges))
	}
	if n := len(s.Since); n > 0 && n != len(s.Waiting) {
		return fmt.Errorf("the state says of %d buckets since when sentences wait, and the sentences have %d", n, len(s.Waiting))
	}
	for _, c := range s.Since {
		if c[0] < 0 || c[1] < 0 || c[1] >= l.src.Len() {
			return fmt.Errorf("sentences wait since epoch %d, position %d, expected a position from 0 to %d", c[0], c[1], l.src.Len()-1)
		}
	}
	for _, n := range s.Waiting {
		if n < 0 || int64(n) > l.src.Len()*(s.Epoch+1) {
			return fmt.Errorf("%d sentences wait, expected 0 or more", n)
		}
	}
	return nil
}

// tails says whether s is at the end of an epoch of sentences, all of which are looked
// at while some wait: between its last batches, which are not full, or, with Drop, behind
// them.
func (l *Loader) tails(s State) bool {
	return l.fill.buckets != nil && l.c.Tail != Carry && s.Position == l.src.Len()
}
