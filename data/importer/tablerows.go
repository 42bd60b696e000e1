package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"

	"ebtrain/ddp/philox"
)

// errChanged ends an import whose originals change meanwhile.
var (
	errChanged   = errors.New("another array than a moment ago: leave it alone while it is imported")
	errOtherRows = errors.New("other rows than a moment ago: leave it alone while it is imported")
)

// share is what a split gets of the rows of train.
type share struct {
	split   string
	percent int
}

func (o TableOptions) shares() []share {
	return []share{{"val", o.ValPercent}, {"test", o.TestPercent}}
}

// take takes shares of the rows of train for the other splits.
func (t *table) take() error {
	all := t.counts["train"]
	for _, s := range t.shares() {
		k := all * int64(s.percent) / 100
		if s.percent > 0 && k == 0 {
			return fmt.Errorf("--%s-percent %d of the rows, %d in all, are none for the split %s", s.split, s.percent, all, s.split)
		}
		t.counts[s.split] += k
		t.counts["train"] -= k
	}
	return nil
}

// records are the rows of the files that are named for a split, one file after another.
func (t *table) records(ctx context.Context, split string) iter.Seq2[record, error] {
	return sequence(func(give func(record) error) error {
		for _, s := range t.sheets[split] {
			for rec, err := range s.records(ctx) {
				if err != nil {
					return err
				}
				if err := give(rec); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rows are those of a split, in order: of the files that are named for it, or else its share
// of those for training.
func (t *table) rows(ctx context.Context, split string) iter.Seq2[record, error] {
	from := split
	if len(t.sheets[split]) == 0 {
		from = "train"
	}
	return sequence(func(give func(record) error) error {
		n := int64(0)
		p := t.picker(from)
		for rec, err := range t.records(ctx, from) {
			if err != nil {
				return err
			}
			of := p.next()
			if of == "" {
				return fmt.Errorf("%s: %w", rec.path, errOtherRows)
			}
			if of != split {
				continue
			}
			n++
			if err := give(rec); err != nil {
				return err
			}
		}
		if n != t.counts[split] {
			files := t.sheets[from]
			return fmt.Errorf("%s: %w", files[len(files)-1].path, errOtherRows)
		}
		return nil
	})
}

// picker says of which split rows are, one after another: at random, and as many as it is to
// be [Knuth, The Art of Computer Programming, algorithm S of 3.4.2]. No list of rows is kept.
type picker struct {
	splits []string
	left   []int64 // rows that are yet to come, by split
	row    int64
}

// picker is one of the rows of the files of a split.
func (t *table) picker(split string) *picker {
	p := &picker{splits: []string{split}, left: []int64{t.counts[split]}}
	for _, other := range []string{"val", "test"} {
		if split == "train" && len(t.sheets[other]) == 0 {
			p.splits, p.left = append(p.splits, other), append(p.left, t.counts[other])
		}
	}
	return p
}

// next is the split of the next row; "" if there are more than there were.
func (p *picker) next() string {
	sum := int64(0)
	for _, n := range p.left {
		sum += n
	}
	draw := philox.Name{Purpose: philox.DataOrder, Sub: philox.DataOrderTable, Step: uint32(p.row >> 32), Sample: uint32(p.row)}.Block(0)
	p.row++
	high, _ := bits.Mul64(uint64(draw[0])<<32|uint64(draw[1]), uint64(sum))
	for i := range p.left {
		if int64(high) < p.left[i] {
			p.left[i]--
			return p.splits[i]
		}
		high -= uint64(p.left[i])
	}
	return ""
}

// moments are the mean and the deviation of a column, as rows come [Welford 1962].
type moments struct {
	n             float64
	mean, squares float64
	least, most   float64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.least, m.most = x, x
	}
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += d * (x - m.mean)
	m.least, m.most = min(m.least, x), max(m.most, x)
}

// standardize scales the columns by the rows of train, and says which have one value only.
func (t *table) standardize(ctx context.Context) (notes []string, err error) {
	all, err := t.columnMoments(ctx)
	if err != nil {
		return nil, err
	}
	var constant []string
	for i, m := range all {
		c := &t.columns[i]
		c.Mean, c.SD = m.mean, math.Sqrt(m.squares/m.n)
		if math.IsInf(c.Mean, 0) || math.IsInf(c.SD, 0) || math.IsNaN(c.SD) {
			return nil, fmt.Errorf("column %q has values too large for their mean and deviation to be known: leave it out, or scale it", c.Name)
		}
		if m.least == m.most || c.SD == 0 {
			c.Mean, c.SD = m.least, 1
			constant = append(constant, c.Name)
		}
	}
	if len(constant) > 0 {
		notes = append(notes, fmt.Sprintf("one value in all rows of the split train, which becomes 0, and whose density has no bound: %s; --leave-out leaves columns out", listed(constant)))
	}
	return notes, nil
}

// columnMoments are those of each column, over the rows of train that Run will look at.
// Rows that are bad are said when they are read again, in their turn.
func (t *table) columnMoments(ctx context.Context) ([]moments, error) {
	all, x := make([]moments, len(t.columns)), make([]float64, len(t.columns))
	var bad error // of the first bad row
	n, good := int64(0), int64(0)
	rows := t.counts["train"]
	if t.Limit > 0 {
		rows = min(rows, t.Limit)
	}
	for rec, err := range t.rows(ctx, "train") {
		if err != nil {
			return nil, err
		}
		if n == t.Limit && n > 0 {
			break
		}
		n++
		t.progress("scale", n, rows)
		if _, err := t.read(rec, x); err != nil {
			if bad == nil {
				bad = fmt.Errorf("%s: %w", rec.name(), err)
			}
			continue
		}
		good++
		for i := range all {
			all[i].add(x[i])
		}
	}
	if good == 0 {
		return nil, fmt.Errorf("%w; no row of the split train can be used", bad)
	}
	return all, nil
}
