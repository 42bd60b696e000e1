package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
)

// Sentences come in batches of one length: each waits in the queue of its bucket,
// in the order of the epoch, until there are as many as a batch has. So a batch is
// a function of the order alone, and what waits at a place in it is too: the last
// few of each bucket before that place. State has how many, and where the oldest
// lies: that says which they are even where some cannot be read any more, so that
// nobody knows their bucket.

// noBucket is where sentences are that cannot be read.
const noBucket = data.MaxBuckets

// spot is a place in the stream of batches: the next sample that is looked at, and
// how many before it still wait, by bucket, and where the oldest of them lies (the
// stream's begin if nothing waits, or an old state did not say).
type spot struct {
	cursor
	waiting [data.MaxBuckets]int
	since   [data.MaxBuckets]cursor
}

// oldest is where the oldest of all that waits lies.
func (s spot) oldest() cursor {
	first := s.cursor
	for k, n := range s.waiting {
		if n > 0 && s.since[k].before(first) {
			first = s.since[k]
		}
	}
	return first
}

// buckets are the lengths of a set of sentences.
type buckets struct {
	text   *data.Text
	of     []uint8 // the bucket of each sample, or noBucket
	counts [data.MaxBuckets]int64
	bad    []*data.CorruptError // blocks that cannot be read
	blocks []int                // their numbers
}

// measure reads how long the sentences of src are.
func measure(src data.Source) (*buckets, error) {
	t := src.Schema().Text
	if t == nil {
		return nil, nil
	}
	b := &buckets{text: t, of: make([]uint8, 0, src.Len())}
	var block data.Block
	for i, span := range src.Layout().Spans() {
		err := src.ReadBlock(i, &block)
		if c, corrupt := errors.AsType[*data.CorruptError](err); corrupt {
			b.bad, b.blocks = append(b.bad, c), append(b.blocks, i)
			b.of = append(b.of, slices.Repeat([]uint8{noBucket}, span.N)...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for j := range span.N {
			k := t.Bucket(block.Length(j))
			b.of = append(b.of, uint8(k))
			b.counts[k]++
		}
	}
	return b, nil
}

// gaps says whether there are sentences whose bucket is not known.
func (b *buckets) gaps() bool { return slices.Contains(b.of, noBucket) }

// digits are the buckets of a block's sentences, a digit each; "" if they are not known.
func (b *buckets) digits(s data.Span) string {
	row := slices.Clone(b.of[s.First : s.First+int64(s.N)])
	if row[0] == noBucket {
		return ""
	}
	for i := range row {
		row[i] += '0'
	}
	return string(row)
}

// as is b with the buckets that a state has of damaged blocks: what could be read when
// its run began waits in the same places as then, and what could not does not.
func (b *buckets) as(known map[int]string, spans []data.Span) (*buckets, error) {
	if len(known) == 0 {
		return b, nil
	}
	c := *b
	c.of = slices.Clone(b.of)
	for block, digits := range known {
		if block < 0 || block >= len(spans) {
			return nil, fmt.Errorf("buckets of block %d, expected 0 to %d", block, len(spans)-1)
		}
		s, most := spans[block], len(b.text.Edges)-1
		row := c.of[s.First : s.First+int64(s.N)]
		if digits == "" {
			digits = strings.Repeat(string('0'+rune(noBucket)), s.N)
		} else if len(digits) != s.N || strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '0'+rune(most) }) >= 0 {
			return nil, fmt.Errorf("buckets %q of block %d, expected a digit from 0 to %d for each of its %d sentences", digits, block, most, s.N)
		}
		for i := range row {
			row[i] = digits[i] - '0'
		}
	}
	c.counts = [data.MaxBuckets]int64{}
	for _, k := range c.of {
		if k < noBucket {
			c.counts[k]++
		}
	}
	return &c, nil
}

// check reports what a loader cannot do with these sentences.
func (b *buckets) check(c Config) error {
	var most int64
	for _, n := range b.counts {
		most = max(most, n)
	}
	switch {
	case c.Flip:
		return errors.New("sentences have no mirror image: leave out the flips")
	case len(b.bad) > 0 && c.Quarantine == nil:
		return b.bad[0]
	case most == 0:
		return errors.New("no sentence can be read: copy or import the data set again")
	case c.Tail == Drop && int64(c.Batch) > most:
		return fmt.Errorf("a batch of %d samples is never filled by the %d of any length and would always be dropped; choose a smaller batch", c.Batch, most)
	}
	return nil
}

// steps is the number of batches in one pass.
func (b *buckets) steps(batch int64, tail Tail) (steps int64) {
	var all int64
	for _, n := range b.counts {
		all += n
		if tail == Mask {
			n += batch - 1
		}
		steps += n / batch
	}
	if tail == Carry {
		return (all + batch - 1) / batch
	}
	return steps
}

// seat is a sample on its way into a batch.
type seat struct {
	place      // where it lies
	epoch, pos int64
}

// line is the sentences on their way into batches.
type line struct {
	f      *filler
	at     spot
	queues [data.MaxBuckets][]seat
	next   []seat // of the batch that was taken last
}

// newLine is the line at a spot. Sentences that waited there and cannot be read since
// are not in it, so fewer may wait.
func newLine(f *filler, at spot) (*line, error) {
	l := &line{f: f, at: at}
	want, first := at.waiting, at.oldest()
	var queues [data.MaxBuckets][]seat
	for c := at.cursor; want != [data.MaxBuckets]int{} && first.before(c); {
		c = c.back(f.n)
		s := l.seat(c.epoch, c.pos)
		if k := f.bucket(s.place); k < noBucket && want[k] > 0 && !c.before(at.since[k]) {
			want[k]--
			queues[k] = append(queues[k], s)
		}
	}
	if want != [data.MaxBuckets]int{} && !f.buckets.gaps() {
		return nil, fmt.Errorf("%v sentences wait at epoch %d, position %d, which is more than there are before it", at.waiting, at.epoch, at.pos)
	}
	for k, q := range queues {
		slices.Reverse(q)
		l.set(k, q)
	}
	return l, nil
}

// set makes q the queue of bucket k.
func (l *line) set(k int, q []seat) {
	l.queues[k], l.at.waiting[k], l.at.since[k] = q, len(q), cursor{}
	if len(q) > 0 {
		l.at.since[k] = cursor{q[0].epoch, q[0].pos}
	}
}

func (l *line) seat(epoch, pos int64) seat {
	return seat{l.f.order(epoch).at(pos), epoch, pos}
}

// bucket is that of a sample.
func (f *filler) bucket(p place) uint8 {
	return f.buckets.of[f.spans[p.block].First+int64(p.in)]
}

// take moves the line to behind the next batch, which is then in next: its bucket;
// false when the passes are over.
func (l *line) take() (bucket int, ok bool) {
	c := l.f.c
	for {
		if k, ok := l.having(c.Batch); ok {
			l.hand(k, c.Batch)
			return k, true
		}
		if l.at.pos < l.f.n {
			l.queue()
			continue
		}
		if k, ok := l.having(1); ok && c.Tail == Mask {
			l.hand(k, len(l.queues[k]))
			return k, true
		}
		l.turn()
		if c.Passes > 0 && l.at.epoch >= int64(c.Passes) {
			return 0, false
		}
	}
}

// having is the first bucket in which at least n wait.
func (l *line) having(n int) (bucket int, ok bool) {
	k := slices.IndexFunc(l.queues[:], func(q []seat) bool { return len(q) >= n })
	return k, k >= 0
}

// queue puts the next sample of the order into its bucket's queue, if it has a bucket.
func (l *line) queue() {
	s := l.seat(l.at.epoch, l.at.pos)
	l.at.pos++
	if k := l.f.bucket(s.place); k < noBucket {
		l.set(int(k), append(l.queues[k], s))
	}
}

// turn begins the next epoch.
func (l *line) turn() {
	l.at.cursor = cursor{l.at.epoch + 1, 0}
	if l.f.c.Tail == Drop {
		for k := range l.queues {
			l.set(k, l.queues[k][:0])
		}
	}
}

// hand moves the first n of a queue into next. An epoch ends with its last batch.
func (l *line) hand(k, n int) {
	q := l.queues[k]
	l.next = append(l.next[:0], q[:n]...)
	l.set(k, append(q[:0], q[n:]...))
	if l.at.pos == l.f.n && (l.f.c.Tail == Carry || l.at.waiting == [data.MaxBuckets]int{}) {
		l.turn()
	}
}

// fillSentences makes the batch at a spot.
func (f *filler) fillSentences(b *Batch, at spot) error {
	if f.line == nil || f.line.at != at {
		l, err := newLine(f, at)
		if err != nil {
			return fmt.Errorf("loader: %w", err)
		}
		f.line = l
	}
	b.Epoch, b.Position = at.epoch, at.pos
	k, ok := f.line.take()
	if !ok {
		return errPassed
	}
	b.Length, b.next = f.buckets.text.Edges[k], f.line.at
	n := len(f.at)
	b.Tokens = b.Tokens[:n*b.Length]
	for i := range f.at {
		f.epochs[i] = -1
		if g := b.First + i; g < len(f.line.next) {
			s := f.line.next[g]
			f.at[i], f.epochs[i], f.pos[i] = s.place, s.epoch, s.pos
		}
	}
	f.forgetSentences()
	if err := f.load(f.at, f.epochs); err != nil {
		return err
	}
	if f.c.Tail == Carry {
		if err := f.replace(); err != nil {
			return err
		}
	}
	for i := range f.at {
		f.putSentence(b, i)
	}
	return nil
}

// forgetSentences drops what neither this batch nor those that wait need.
func (f *filler) forgetSentences() {
	at := f.line.at
	f.forgetOrders(at.epoch)
	o := f.order(at.epoch)
	first := o.pool(min(at.pos, f.n-1))
	o.keep(first)
	f.kept = append(f.kept[:0], o.blocksOf(first)...)
	for i := range f.at {
		if f.epochs[i] >= 0 {
			f.kept = append(f.kept, f.at[i].block)
		}
	}
	for _, q := range f.line.queues {
		for _, s := range q {
			f.kept = append(f.kept, s.block)
		}
	}
	f.blocks.keep(f.kept)
}

// putSentence writes the sentence of slot i, padded.
func (f *filler) putSentence(b *Batch, i int) {
	row := b.Tokens[i*b.Length : (i+1)*b.Length]
	clear(row) // data.Padding
	b.Labels[i], b.Indices[i], b.Weight[i], b.Lengths[i] = -1, -1, 0, 0
	if f.epochs[i] < 0 {
		return
	}
	p := f.at[i]
	b.Indices[i] = f.spans[p.block].First + int64(p.in)
	block := f.blocks.decoded[p.block]
	if block == nil || f.isBad(p.block) {
		return
	}
	b.Labels[i], b.Weight[i], b.Lengths[i] = block.Labels[p.in], 1, int32(block.Length(p.in))
	block.Tokens(p.in, row[:0])
}
