package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"ebtrain/data/mat5"
)

// The Frey faces: frames of a film, 28 rows of 20 pixels each.
const (
	freyFile   = "frey_rawface.mat"
	freyRows   = 28
	freyCols   = 20
	freyFrames = 1965
)

// Frey opens the Frey faces, frey_rawface.mat or the directory it is in: a
// MAT-file of level 5 with one frame in each column of the variable ff. The
// splits are chronological, as in the papers: 1400 frames for training, 300 for
// validation, 265 for testing. Of a g without settings the pictures stay as they
// are, grey.
func Frey(ctx context.Context, src string, g Geometry) (*Set, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("%w; give the path of %s", err, freyFile)
	}
	if st.IsDir() {
		src = filepath.Join(src, freyFile)
	}
	frames, err := freyPixels(ctx, src)
	if err != nil {
		return nil, err
	}
	g.Channels = cmp.Or(g.Channels, 1)
	p := stored{geometry: g, planes: 1, h: freyRows, w: freyCols}
	s := &Set{Schema: g.of(p.fit(), nil), Preprocessing: g.rawPreprocessing("frey")}
	first := 0
	for _, part := range []struct {
		split string
		n     int
	}{{"train", 1400}, {"val", 300}, {"test", 265}} {
		name := func(i int) string { return fmt.Sprintf("%s: frame %d", src, i) }
		s.Splits = append(s.Splits, Split{
			Name: part.split, Count: int64(part.n), Items: frameItems(frames, first, part.n, p, name),
		})
		first += part.n
	}
	return s, nil
}

// frameItems are n frames from first, each of p's size.
func frameItems(frames []byte, first, n int, p stored, name func(i int) string) originals {
	return reading(func(_ context.Context, b *budget, give func(Item) error) error {
		need, err := p.need(b.limit)
		if err != nil {
			return err
		}
		size := p.planes * p.h * p.w
		for i := first; i < first+n; i++ {
			pixels := frames[i*size : (i+1)*size]
			values := func(ctx context.Context, b *budget) ([]byte, error) {
				if err := b.take(ctx, need); err != nil {
					return nil, err
				}
				defer b.give(need)
				return p.sample(pixels)
			}
			if err := give(Item{Name: name(i), Label: -1, Values: values}); err != nil {
				return err
			}
		}
		return nil
	})
}

// freyPixels are all frames, one after another, each row by row. A column of ff
// is a frame, and columns are stored one after another.
func freyPixels(ctx context.Context, path string) ([]byte, error) {
	f, err := openRegular(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	pixels, err := parseFrey(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pixels, nil
}

func parseFrey(in io.Reader) ([]byte, error) {
	r, err := mat5.NewReader(in)
	if err != nil {
		return nil, err
	}
	v, err := find(r, "ff")
	if err != nil {
		return nil, err
	}
	if len(v.Dims) != 2 || v.Dims[0] != freyRows*freyCols || v.Dims[1] != freyFrames {
		return nil, fmt.Errorf("its variable is %v, expected %d×%d: one column for each frame of %d×%d pixels", v, freyRows*freyCols, freyFrames, freyRows, freyCols)
	}
	values, err := r.Values()
	if err != nil {
		return nil, err
	}
	pixels := make([]byte, len(values))
	for i, x := range values {
		if x != math.Trunc(x) || x < 0 || x > math.MaxUint8 {
			return nil, fmt.Errorf("pixel %d of frame %d in ff is %g, expected a whole number from 0 to 255", i%v.Dims[0], i/v.Dims[0], x)
		}
		pixels[i] = byte(x)
	}
	return pixels, nil
}

// find goes to the variable called name.
func find(r *mat5.Reader, name string) (mat5.Variable, error) {
	var others []string
	for {
		v, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || v.Name == name {
			return v, err
		}
		others = append(others, v.String())
	}
	if len(others) == 0 {
		return mat5.Variable{}, fmt.Errorf("no variables in it, expected %s", name)
	}
	return mat5.Variable{}, fmt.Errorf("no variable %s in it, only %s", name, strings.Join(others, ", "))
}
