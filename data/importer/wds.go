package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

func isTar(name string) bool {
	for _, ext := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

// WebDataset opens tars in the WebDataset convention: a sample is the files
// that follow each other and share their name up to the first dot, a picture
// (.jpg, .jpeg or .png) and, in all samples or none, a class number (.cls). A
// directory stands for its tars. The split is test or val for files with that
// word in the name, else train. The tars are read once to count samples and
// classes, and again to import them.
func WebDataset(ctx context.Context, srcs []string, g Geometry) (*Set, error) {
	files, err := expand(srcs, func(name string) int {
		if isTar(name) {
			return 1
		}
		return 0
	})
	if err != nil {
		return nil, fmt.Errorf("%w, expected .tar, .tar.gz or .tar.zst", err)
	}
	s, _, err := webDataset(ctx, files, g)
	return s, err
}

// webDataset is WebDataset of files; it also says what the first picture's
// header says.
func webDataset(ctx context.Context, files []string, g Geometry) (*Set, header, error) {
	s := &Set{Preprocessing: g.preprocessing("wds")}
	var sum tally
	for split, paths := range bySplit(files) {
		n, err := sum.count(ctx, paths)
		if err != nil {
			return nil, header{}, err
		}
		s.Splits = append(s.Splits, Split{Name: split, Count: n})
	}
	classes, err := sum.classes()
	if err != nil {
		return nil, header{}, fmt.Errorf("%s: %w", files[0], err)
	}
	if s.Schema, err = g.schema(ctx, inMemory(sum.first), classes); err != nil {
		return nil, header{}, fmt.Errorf("%s: first picture: %w", files[0], err)
	}
	if note := sum.apart.note(); note != "" {
		s.Notes = append(s.Notes, note)
	}
	i := 0
	for _, paths := range bySplit(files) { // now that g knows the size
		s.Splits[i].Items = g.tarItems(paths)
		i++
	}
	first, _ := readHeader(bytes.NewReader(sum.first)) // that it is damaged is said when it is decoded
	return s, first, nil
}

// tally is what is found when the tars are read for the first time.
type tally struct {
	first    []byte // the first picture
	highest  int64  // 1 + the highest class
	seen     bool   // a sample of any split
	labelled bool   // the first of all has a class
	apart    apart
}

// count counts the samples of a split.
func (s *tally) count(ctx context.Context, paths []string) (n int64, err error) {
	for _, path := range paths {
		for t, err := range (&tarReader{counting: s}).samples(ctx, path) {
			if err != nil {
				return 0, err
			}
			if has := t.label != nil; !s.seen {
				s.seen, s.labelled = true, has
			} else if s.labelled != has {
				return 0, fmt.Errorf("%s: some samples have a .cls and %s differs, expected all or none", path, readable(t.key))
			}
			if l, err := t.class(); err == nil { // a bad one is named when it is imported
				s.highest = max(s.highest, l+1)
			}
			n++
		}
	}
	if n == 0 {
		err := fmt.Errorf("%s: no samples, expected pictures named like 000000.jpg", paths[0])
		if note := s.apart.note(); note != "" {
			err = fmt.Errorf("%w; %s", err, note)
		}
		return 0, err
	}
	return n, nil
}

// classes are the numbers up to the highest.
func (s *tally) classes() ([]string, error) {
	if s.highest > 1<<20 {
		return nil, fmt.Errorf("a class number of %d, expected at most %d", s.highest-1, 1<<20-1)
	}
	return numbered(s.highest), nil
}

// tarItems are the samples of the tars, one after another. Memory for a sample
// is taken before the next is read.
func (g Geometry) tarItems(paths []string) originals {
	return reading(func(ctx context.Context, b *budget, give func(Item) error) error {
		for _, path := range paths {
			for t, err := range (&tarReader{budget: b}).samples(ctx, path) {
				if err != nil {
					return err
				}
				item, err := g.tarItem(ctx, b, path, t)
				if err != nil {
					return err
				}
				if err := give(item); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tarItem takes the memory that it needs to decode t, which already holds that
// of the entry.
func (g Geometry) tarItem(ctx context.Context, b *budget, path string, t tarSample) (Item, error) {
	label, bad := t.class()
	switch {
	case t.bad != nil:
		bad = t.bad
	case t.picture == nil:
		bad = errors.New("a sample without a picture, expected .jpg, .jpeg or .png")
	}
	var n int64
	if bad == nil {
		n, bad = g.tarNeed(t, b.limit-t.held)
	}
	if err := b.take(ctx, n); err != nil {
		return Item{}, err
	}
	return Item{Name: path + ": " + readable(t.key), Label: label, Values: func(ctx context.Context, b *budget) ([]byte, error) {
		defer b.give(n + t.held)
		if bad != nil {
			return nil, bad
		}
		return g.decodeNow(ctx, inMemory(t.picture))
	}}, nil
}

func (g Geometry) tarNeed(t tarSample, limit int64) (int64, error) {
	h, err := readHeader(bytes.NewReader(t.picture))
	if err != nil {
		return 0, err
	}
	return g.need(h, limit)
}
