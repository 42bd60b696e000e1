package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A CIFAR-10 record: a label, then the planes R, G and B of 32×32.
const (
	cifarSide   = 32
	cifarPixels = 3 * cifarSide * cifarSide
	cifarRecord = 1 + cifarPixels
)

var cifarClasses = []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

// CIFAR10 opens CIFAR-10 from the given files and directories: binary batches
// (data_batch_1.bin … and test_batch.bin, of any number of records) or
// WebDataset tars of 32×32 pictures (.tar, .tar.gz, .tar.zst). A directory
// stands for the batches in it or, if it has none, for its tars. The split is
// test for files with "test" in the name, else train. Of a g without settings
// the pictures stay as they are.
func CIFAR10(ctx context.Context, srcs []string, g Geometry) (*Set, error) {
	files, err := expand(srcs, func(name string) int {
		switch {
		case strings.HasSuffix(name, ".bin") && strings.Contains(name, "batch"):
			return 2
		case isTar(name):
			return 1
		}
		return 0
	})
	if err != nil {
		return nil, fmt.Errorf("%w, expected data_batch_1.bin or *.tar.zst", err)
	}
	bins, tars := 0, 0
	for _, f := range files {
		switch {
		case strings.HasSuffix(f, ".bin"):
			bins++
		case isTar(f):
			tars++
		default:
			return nil, fmt.Errorf("%s: expected a binary batch (.bin) or a tar (.tar, .tar.gz, .tar.zst)", f)
		}
	}
	if bins > 0 && tars > 0 {
		return nil, fmt.Errorf("%s: both binary batches and tars are given, expected one kind", strings.Join(files, ", "))
	}
	if tars > 0 {
		return cifarTars(ctx, files, g)
	}
	pictures := stored{geometry: g, planes: 3, h: cifarSide, w: cifarSide}
	s := &Set{Schema: g.of(pictures.fit(), cifarClasses), Preprocessing: g.rawPreprocessing("cifar10")}
	for split, paths := range bySplit(files) {
		p := Split{Name: split, Items: cifarItems(paths, pictures)}
		for _, path := range paths {
			st, err := os.Stat(path)
			if err != nil {
				return nil, err
			}
			if n := st.Size(); n > 0 && n%cifarRecord != 0 && n%(cifarRecord+1) == 0 { // out of step records are noise, some with a label that is right
				return nil, fmt.Errorf("%s: %d records of %d bytes, as CIFAR-100 has, with two labels each; expected CIFAR-10's of %d: CIFAR-100 has no importer, so write its pictures as PNG files, for mkshards folder", path, n/(cifarRecord+1), cifarRecord+1, cifarRecord)
			}
			p.Count += (st.Size() + cifarRecord - 1) / cifarRecord
		}
		s.Splits = append(s.Splits, p)
	}
	return s, nil
}

// cifarTars is CIFAR-10 as a WebDataset.
func cifarTars(ctx context.Context, files []string, g Geometry) (*Set, error) {
	s, first, err := webDataset(ctx, files, g)
	if err != nil {
		return nil, err
	}
	if n := len(s.Schema.Classes); first.w != cifarSide || first.h != cifarSide || n != len(cifarClasses) {
		return nil, fmt.Errorf("%s: pictures of %d×%d in %d classes, expected CIFAR-10's 32×32 in 10; use mkshards wds", files[0], first.w, first.h, n)
	}
	s.Schema.Classes = cifarClasses
	s.Preprocessing["importer"] = "cifar10 (WebDataset)"
	return s, nil
}

// cifarItems reads batches one after another.
func cifarItems(paths []string, p stored) originals {
	return reading(func(ctx context.Context, b *budget, give func(Item) error) error {
		need, err := p.need(b.limit)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := cifarBatch(ctx, b, path, p, need, give); err != nil {
				return err
			}
		}
		return nil
	})
}

// cifarBatch reads a batch; each record takes need bytes.
func cifarBatch(ctx context.Context, b *budget, path string, p stored, need int64, give func(Item) error) error {
	f, err := openRegular(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	r := bufio.NewReaderSize(f, 1<<18)
	for i := int64(0); ; i++ {
		if err := b.take(ctx, need); err != nil {
			return err
		}
		rec := make([]byte, cifarRecord)
		n, err := io.ReadFull(r, rec)
		if errors.Is(err, io.EOF) {
			b.give(need)
			if i == 0 {
				return fmt.Errorf("%s: empty, expected records of %d bytes", path, cifarRecord)
			}
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: record %d at offset %d: %w", path, i, i*cifarRecord, err)
		}
		item := Item{Name: fmt.Sprintf("%s: record %d at offset %d", path, i, i*cifarRecord), Label: int64(rec[0])}
		item.Values = func(_ context.Context, b *budget) ([]byte, error) {
			defer b.give(need)
			if n < cifarRecord {
				return nil, fmt.Errorf("%d bytes, expected %d: the file is cut short", n, cifarRecord)
			}
			if rec[0] > 9 {
				return nil, fmt.Errorf("label %d, expected 0 to 9", rec[0])
			}
			return p.sample(rec[1:])
		}
		if err := give(item); err != nil {
			return err
		}
	}
}

// expand replaces each directory by those of its files that rank highest, sorted;
// rank 0 files are left out. Files that are named stay, whatever their rank.
func expand(srcs []string, rank func(name string) int) ([]string, error) {
	if len(srcs) == 0 {
		return nil, errors.New("no source given")
	}
	var files []string
	for _, src := range srcs {
		st, err := os.Stat(src)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			files = append(files, src)
			continue
		}
		entries, err := os.ReadDir(src)
		if err != nil {
			return nil, err
		}
		best, found := 1, []string(nil)
		for _, e := range entries {
			switch r := rank(e.Name()); {
			case e.IsDir() || r < best || hidden(e.Name()):
			case r > best:
				best, found = r, []string{filepath.Join(src, e.Name())}
			default:
				found = append(found, filepath.Join(src, e.Name()))
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no files of the kind", src)
		}
		files = append(files, found...)
	}
	return files, nil
}

// bySplit groups files by the split that their names say, splits in the order
// train, val, test.
func bySplit(files []string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, split := range []string{"train", "val", "test"} {
			mine := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return splitOf(f) != split })
			if len(mine) > 0 && !yield(split, mine) {
				return
			}
		}
	}
}

func splitOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	switch {
	case strings.Contains(name, "test"):
		return "test"
	case strings.Contains(name, "val"):
		return "val"
	}
	return "train"
}
