package loader

// cursor is a place in the endless stream of epochs.
type cursor struct{ epoch, pos int64 }

// before says whether c comes before d.
func (c cursor) before(d cursor) bool {
	return c.epoch < d.epoch || c.epoch == d.epoch && c.pos < d.pos
}

// back is the place before c, in epochs of n samples.
func (c cursor) back(n int64) cursor {
	if c.pos == 0 {
		return cursor{c.epoch - 1, n - 1}
	}
	return cursor{c.epoch, c.pos - 1}
}

// after is the cursor of the batch that follows the one at c, in epochs of n
// samples.
func (c cursor) after(batch, n int64, tail Tail) cursor {
	next := cursor{c.epoch, c.pos + batch}
	switch tail {
	case Carry:
		return cursor{next.epoch + next.pos/n, next.pos % n}
	case Mask:
		if next.pos >= n {
			return cursor{c.epoch + 1, 0}
		}
	case Drop:
		if next.pos+batch > n {
			return cursor{c.epoch + 1, 0}
		}
	}
	return next
}

// slot is the place of global slot g of the batch at c; false for an empty one.
func (c cursor) slot(g, n int64, tail Tail) (cursor, bool) {
	at := c.pos + g
	if at < n {
		return cursor{c.epoch, at}, true
	}
	if tail == Carry {
		return cursor{c.epoch + at/n, at % n}, true
	}
	return cursor{}, false
}
