package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ebtrain/data/mat5"
)

// The cropped digits of Street View House Numbers: pictures of 32×32 in colour, and
// their digits, of which 0 is written as 10.
const (
	svhnSide   = 32
	svhnPlanes = 3
	svhnBytes  = svhnPlanes * svhnSide * svhnSide
	svhnZero   = 10
)

var svhnSplits = []string{"train", "test", "extra"}

// SVHN opens the cropped digits, MAT-files of level 5: of a directory
// train_32x32.mat, test_32x32.mat and extra_32x32.mat, as many as there are, of a file
// only that, which is train unless its name begins with another split's. X holds the
// pictures, y their digits; without y they have none. Of a g without settings the
// pictures stay as they are.
func SVHN(ctx context.Context, src string, g Geometry) (*Set, error) {
	files, err := svhnFiles(src)
	if err != nil {
		return nil, err
	}
	g.Channels = cmp.Or(g.Channels, svhnPlanes)
	p := stored{geometry: g, planes: svhnPlanes, h: svhnSide, w: svhnSide}
	size := p.fit()
	s := &Set{Preprocessing: g.rawPreprocessing("svhn")}
	labelled := 0
	for _, split := range svhnSplits {
		path, ok := files[split]
		if !ok {
			continue
		}
		n, labels, err := svhnLabels(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if labels != nil {
			labelled++
		}
		s.Splits = append(s.Splits, Split{Name: split, Count: int64(n), Items: svhnItems(path, n, labels, p)})
	}
	var classes []string
	switch labelled {
	case 0:
		s.Notes = append(s.Notes, "there is no y in it: the pictures have no classes")
	case len(s.Splits):
		classes = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	default:
		return nil, fmt.Errorf("%s: %d of %d files have digits (the variable y), expected all or none", src, labelled, len(s.Splits))
	}
	s.Schema = g.of(size, classes)
	return s, s.Schema.Validate()
}

// svhnFiles are the files of src, by split.
func svhnFiles(src string) (map[string]string, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("%w; give the directory of train_32x32.mat and test_32x32.mat, or one of them", err)
	}
	if !st.IsDir() {
		for _, split := range svhnSplits {
			if strings.HasPrefix(filepath.Base(src), split) {
				return map[string]string{split: src}, nil
			}
		}
		return map[string]string{svhnSplits[0]: src}, nil
	}
	files := map[string]string{}
	for _, split := range svhnSplits {
		path := filepath.Join(src, split+"_32x32.mat")
		switch _, err := os.Stat(path); {
		case err == nil:
			files[split] = path
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no file of SVHN's cropped digits, expected train_32x32.mat, test_32x32.mat or extra_32x32.mat", src)
	}
	return files, nil
}

// svhnLabels is how many pictures a file has, and their digits; nil if it has none.
func svhnLabels(ctx context.Context, path string) (n int, labels []byte, err error) {
	f, err := openRegular(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return parseSVHN(f)
}

func parseSVHN(in io.Reader) (n int, labels []byte, err error) {
	r, err := mat5.NewReader(in)
	if err != nil {
		return 0, nil, err
	}
	var others []string
	for n < 1 || labels == nil {
		v, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		switch v.Name {
		case "X":
			n, err = svhnCount(v)
		case "y":
			labels, err = svhnDigits(r, v)
		}
		if err != nil {
			return 0, nil, err
		}
		others = append(others, v.String())
	}
	switch {
	case n < 1:
		return 0, nil, fmt.Errorf("no pictures (the variable X) in it, only %s", cmp.Or(strings.Join(others, ", "), "nothing"))
	case labels != nil && len(labels) != n:
		return 0, nil, fmt.Errorf("%d pictures in X, but %d digits in y", n, len(labels))
	}
	return n, labels, nil
}

// svhnCount is how many pictures X has; one picture may lack the last size.
func svhnCount(v mat5.Variable) (int, error) {
	d := append(append([]int{}, v.Dims...), 1)[:4:4]
	if len(v.Dims) < 3 || len(v.Dims) > 4 || d[0] != svhnSide || d[1] != svhnSide || d[2] != svhnPlanes || d[3] < 1 {
		return 0, fmt.Errorf("its variable is %v, expected %d×%[2]d×%d×N unsigned bytes, N pictures", v, svhnSide, svhnPlanes)
	}
	return d[3], nil
}

func svhnDigits(r *mat5.Reader, v mat5.Variable) ([]byte, error) {
	const most = 1 << 24 // the largest part has 531,131
	if v.Len() > most || v.Len() == 0 {
		return nil, fmt.Errorf("its variable is %v, expected a digit for each picture", v)
	}
	values, err := r.Values()
	if err != nil {
		return nil, err
	}
	labels := make([]byte, len(values))
	for i, x := range values {
		if x != float64(byte(x)) || x < 1 || x > svhnZero {
			return nil, fmt.Errorf("digit %d in y is %g, expected 1 to 9, or %d for 0", i, x, svhnZero)
		}
		labels[i] = byte(x) % svhnZero
	}
	return labels, nil
}

// svhnItems are the n pictures of a file. One follows the other, plane by plane, each
// column by column.
func svhnItems(path string, n int, labels []byte, p stored) originals {
	label := func(i int) int64 {
		if labels == nil {
			return -1
		}
		return int64(labels[i])
	}
	return reading(func(ctx context.Context, b *budget, give func(Item) error) error {
		return withSVHN(ctx, path, func(r io.Reader) error {
			need, err := p.need(b.limit)
			if err != nil {
				return err
			}
			for i := range n {
				if err := b.take(ctx, need); err != nil {
					return err
				}
				raw := make([]byte, svhnBytes)
				if _, err := io.ReadFull(r, raw); err != nil {
					return err
				}
				values := func(_ context.Context, b *budget) ([]byte, error) {
					defer b.give(need)
					return p.sample(byRows(raw))
				}
				if err := give(Item{Name: fmt.Sprintf("%s: picture %d", path, i), Label: label(i), Values: values}); err != nil {
					return err
				}
			}
			_, err = io.Copy(io.Discard, r) // nothing is left, and what was read is whole
			return err
		})
	})
}

// withSVHN calls f with the values of X. Errors name the path.
func withSVHN(ctx context.Context, path string, f func(r io.Reader) error) error {
	file, err := openRegular(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	values := func() error {
		r, err := mat5.NewReader(file)
		if err != nil {
			return err
		}
		if _, err := find(r, "X"); err != nil {
			return err
		}
		in, err := r.Bytes()
		if err != nil {
			return err
		}
		return f(in)
	}
	if err := values(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// byRows is a picture whose planes lie row by row, of one where they lie column by
// column.
func byRows(raw []byte) []byte {
	out := make([]byte, len(raw))
	for c := range svhnPlanes {
		plane := c * svhnSide * svhnSide
		for row := range svhnSide {
			for col := range svhnSide {
				out[plane+row*svhnSide+col] = raw[plane+col*svhnSide+row]
			}
		}
	}
	return out
}
