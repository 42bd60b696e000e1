package importer

import (
	"bufio"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Magic numbers of idx files: unsigned bytes with 3 and 1 dimensions.
const (
	idxPictures = 0x803
	idxLabels   = 0x801
)

// mostLabels limits the labels of an idx file, which are read whole.
const mostLabels = 1 << 24

// MNIST opens the four idx files in dir, gzipped or not: train-images-idx3-ubyte
// and so on. A split whose files are both absent is left out. Of a g without
// settings the pictures stay as they are, grey.
func MNIST(ctx context.Context, dir string, g Geometry) (*Set, error) {
	g.Channels = cmp.Or(g.Channels, 1)
	s := &Set{Preprocessing: g.rawPreprocessing("mnist")}
	var size stored
	for _, p := range []struct{ split, prefix string }{{"train", "train"}, {"test", "t10k"}} {
		pictures, err := findIDX(dir, p.prefix+"-images", "idx3-ubyte")
		if err != nil {
			return nil, err
		}
		labels, err := findIDX(dir, p.prefix+"-labels", "idx1-ubyte")
		if err != nil {
			return nil, err
		}
		if pictures == "" && labels == "" {
			continue
		}
		if pictures == "" || labels == "" {
			return nil, fmt.Errorf("%s: has only one of %s-images-idx3-ubyte.gz and %[2]s-labels-idx1-ubyte.gz, expected both", dir, p.prefix)
		}
		if err := s.addIDX(ctx, p.split, pictures, labels, g, &size); err != nil {
			return nil, err
		}
	}
	if len(s.Splits) == 0 {
		return nil, fmt.Errorf("%s: no MNIST files, expected train-images-idx3-ubyte.gz and three more", dir)
	}
	return s, nil
}

// findIDX is the path of a file under one of its usual names, "" if absent.
func findIDX(dir, stem, kind string) (string, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return "", fmt.Errorf("%w; give the directory of the four idx files", err)
	}
	for _, sep := range []string{"-", "."} {
		for _, ext := range []string{".gz", ""} {
			path := filepath.Join(dir, stem+sep+kind+ext)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
	}
	return "", nil
}

// addIDX adds a split, reading its labels and the header of its pictures. size
// is that of the pictures of other splits.
func (s *Set) addIDX(ctx context.Context, split, pictures, labels string, g Geometry, size *stored) error {
	var mine stored
	var count int
	err := withIDX(ctx, pictures, idxPictures, func(r *idx) error {
		if count = r.n; count > mostLabels {
			return fmt.Errorf("offset 4: %d pictures, expected at most %d", count, mostLabels)
		}
		mine = stored{geometry: g, planes: 1, h: r.h, w: r.w}
		if len(s.Splits) > 0 && (mine.h != size.h || mine.w != size.w) {
			return fmt.Errorf("pictures of %d×%d, those before have %d×%d", r.h, r.w, size.h, size.w)
		}
		s.Schema = g.of(mine.fit(), []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
		return s.Schema.Validate()
	})
	if err != nil {
		return err
	}
	var ls []byte
	err = withIDX(ctx, labels, idxLabels, func(r *idx) error {
		if r.n != count {
			return fmt.Errorf("%d labels, but %s has %d pictures", r.n, pictures, count)
		}
		for r.i < r.n { // in parts: the header may lie
			part := make([]byte, min(r.n-r.i, 1<<16))
			if err := r.next(part); err != nil {
				return err
			}
			ls = append(ls, part...)
		}
		return r.end()
	})
	if err != nil {
		return err
	}
	*size = mine
	items := reading((&idxSplit{pictures, ls, mine}).read)
	s.Splits = append(s.Splits, Split{Name: split, Count: int64(len(ls)), Items: items})
	return nil
}

// idxSplit is a file of as many pictures as there are labels.
type idxSplit struct {
	path   string
	labels []byte
	stored // each picture
}

// read gives the pictures.
func (s *idxSplit) read(ctx context.Context, b *budget, give func(Item) error) error {
	return withIDX(ctx, s.path, idxPictures, func(r *idx) error { return s.items(ctx, b, r, give) })
}

// items gives the pictures of r.
func (s *idxSplit) items(ctx context.Context, b *budget, r *idx, give func(Item) error) error {
	need, err := s.need(b.limit)
	if err != nil {
		return err
	}
	for _, l := range s.labels {
		if err := b.take(ctx, need); err != nil {
			return err
		}
		name := fmt.Sprintf("%s: picture %d", s.path, r.i)
		pixels := make([]byte, s.h*s.w)
		if err := r.next(pixels); err != nil {
			return err
		}
		values := func(_ context.Context, b *budget) ([]byte, error) {
			defer b.give(need)
			if l > 9 {
				return nil, fmt.Errorf("label %d, expected 0 to 9", l)
			}
			return s.sample(pixels)
		}
		if err := give(Item{Name: name, Label: int64(l), Values: values}); err != nil {
			return err
		}
	}
	return r.end()
}

// idx reads the records of an idx file.
type idx struct {
	r       io.Reader
	n, h, w int   // records and, for pictures, their size
	i       int   // next record
	offset  int64 // of it, uncompressed
}

// withIDX opens path, checks its header and calls f. Errors name the path.
func withIDX(ctx context.Context, path string, magic uint32, f func(r *idx) error) error {
	file, err := openRegular(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := newIDX(file, magic)
	if err == nil {
		err = f(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// newIDX reads the header of an idx stream, gzipped or not.
func newIDX(in io.Reader, magic uint32) (*idx, error) {
	buf := bufio.NewReaderSize(in, 1<<16)
	r := &idx{r: buf}
	if head, err := buf.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, fmt.Errorf("gzip header at offset 0: %w", err)
		}
		r.r = z
	}
	dims := 1
	if magic == idxPictures {
		dims = 3
	}
	head := make([]byte, 4+4*dims)
	n, err := io.ReadFull(r.r, head)
	if got := binary.BigEndian.Uint32(head); n >= 4 && got != magic {
		return nil, fmt.Errorf("offset 0: magic number %#x, expected %#x", got, magic)
	}
	if err != nil {
		return nil, fmt.Errorf("offset 0: expected an idx header of %d bytes: %w", len(head), short(err))
	}
	size := [3]uint32{0, 1, 1}
	for d := range dims {
		size[d] = binary.BigEndian.Uint32(head[4+4*d:])
		if size[d] < 1 || size[d] > 1<<30 || d > 0 && size[d] > 1<<14 {
			return nil, fmt.Errorf("offset %d: dimension %d is %d, out of range", 4+4*d, d, size[d])
		}
	}
	r.n, r.h, r.w = int(size[0]), int(size[1]), int(size[2])
	r.offset = int64(len(head))
	return r, nil
}

// next reads the next record or, of labels, the next len(dst).
func (r *idx) next(dst []byte) error {
	if n, err := io.ReadFull(r.r, dst); err != nil {
		return fmt.Errorf("record %d of %d at offset %d: %d of %d bytes: %w", r.i, r.n, r.offset, n, len(dst), short(err))
	}
	r.i += len(dst) / (r.h * r.w)
	r.offset += int64(len(dst))
	return nil
}

// end checks that nothing follows the last record; at the end of a gzip file
// this also checks its checksum.
func (r *idx) end() error {
	n, err := io.ReadFull(r.r, make([]byte, 1))
	if n > 0 {
		return fmt.Errorf("offset %d: more bytes than the %d records that the header promises", r.offset, r.n)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("offset %d: after the last record: %w", r.offset, short(err))
	}
	return nil
}

// short says in plain words that a compressed file, or a record, ends too soon or is
// damaged, and what to do.
func short(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends too soon: it was cut short, so copy or download it again")
	case corrupt || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrCRCMismatch):
		return damaged(err)
	}
	return err
}

// damaged is err, of a file that is damaged, with what to do.
func damaged(err error) error {
	return fmt.Errorf("%w: damaged, so copy or download it again", err)
}
