package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// mostClasses limits the classes that labels of arrays may name.
const mostClasses = 1 << 16

// array is a .npy file of pictures.
type array struct {
	path   string
	n      int64
	stored         // each of them
	last   bool    // its channels are the last dimension: pixels lie one after another
	labels []int64 // nil without
}

// Arrays opens pictures in arrays of NumPy's (.npy) of bytes: (N, H, W), or (N, H, W, C) or
// (N, C, H, W) with 1 or 3 channels, all of the same size. labels are files of whole numbers
// from 0, (N) or (N, 1), one for each of pictures, in the same order, or none at all. The
// split is test or val for pictures with that in the file's name, else train. Of a g without
// settings the pictures stay as they are.
func Arrays(ctx context.Context, pictures, labels []string, g Geometry) (*Set, error) {
	if len(labels) > 0 && len(labels) != len(pictures) {
		return nil, fmt.Errorf("%d arrays of labels and %d of pictures, expected one for each, in the same order, or none", len(labels), len(pictures))
	}
	if len(pictures) == 0 {
		return nil, errors.New("no source given")
	}
	var arrays []array
	classes := int64(0)
	for i, path := range pictures {
		a, err := openArray(ctx, path, g)
		if err != nil {
			return nil, err
		}
		if i > 0 && (a.planes != arrays[0].planes || a.h != arrays[0].h || a.w != arrays[0].w) {
			return nil, fmt.Errorf("%s: %s, expected what %s has, %s", path, a.text(), arrays[0].path, arrays[0].text())
		}
		if len(labels) > 0 {
			if a.labels, err = readLabels(ctx, labels[i], a.path, a.n); err != nil {
				return nil, err
			}
			classes = max(classes, 1+slices.Max(a.labels))
		}
		arrays = append(arrays, a)
	}
	g = arrays[0].geometry // with the arrays' channels
	return &Set{
		Schema:        g.of(arrays[0].fit(), numbered(classes)),
		Preprocessing: g.rawPreprocessing("npy"),
		Splits:        arraySplits(arrays),
	}, nil
}

// arraySplits are the splits that the arrays' names say.
func arraySplits(arrays []array) (splits []Split) {
	for _, split := range []string{"train", "val", "test"} {
		mine := slices.DeleteFunc(slices.Clone(arrays), func(a array) bool { return splitOf(a.path) != split })
		if len(mine) == 0 {
			continue
		}
		p := Split{Name: split, Items: arrayItems(mine)}
		for _, a := range mine {
			p.Count += a.n
		}
		splits = append(splits, p)
	}
	return splits
}

// text says what its pictures are.
func (a *array) text() string {
	return fmt.Sprintf("pictures of %d×%d and %d channels", a.h, a.w, a.planes)
}

// openArray looks at an array of pictures.
func openArray(ctx context.Context, path string, g Geometry) (array, error) {
	a := array{path: path}
	err := withNPY(ctx, path, func(h npy) error { return a.lies(h, g) }, nil)
	return a, err
}

// lies finds out how pictures lie in an array.
func (a *array) lies(h npy, g Geometry) error {
	if len(h.shape) == 2 {
		return fmt.Errorf("the shape %s, expected (N, H, W), or (N, H, W, C) or (N, C, H, W) with 1 or 3 channels: reshape it, or, if rows are no pictures, take mkshards table", h.text())
	}
	if h.width() != 1 || h.kind[1] != 'u' {
		return fmt.Errorf("values of the kind %q, expected bytes (uint8): save numpy.uint8(numpy.rint(255 * x)) of values from 0 to 1", h.kind)
	}
	few := func(d int) bool { return len(h.shape) == 4 && (h.shape[d] == 1 || h.shape[d] == 3) }
	rows, channels := 1, int64(1)
	switch {
	case few(1) && few(3):
		return fmt.Errorf("the shape %s, which may be (N, H, W, C) or (N, C, H, W): sides of 1 or 3 pixels cannot be told from channels", h.text())
	case few(3):
		channels, a.last = h.shape[3], true
	case few(1):
		channels, rows = h.shape[1], 2
	case len(h.shape) != 3:
		return fmt.Errorf("the shape %s, expected (N, H, W), or (N, H, W, C) or (N, C, H, W) with 1 or 3 channels: reshape it", h.text())
	}
	high, wide := h.shape[rows], h.shape[rows+1]
	if high > 1<<14 || wide > 1<<14 || channels*high*wide > maxEntry {
		return fmt.Errorf("pictures of %d×%d, expected sides of at most %d and %s for one", high, wide, 1<<14, byteText(maxEntry))
	}
	g.Channels = cmp.Or(g.Channels, int(channels))
	a.n, a.stored = h.shape[0], stored{geometry: g, planes: int(channels), h: int(high), w: int(wide)}
	a.fit()
	return nil
}

// readLabels reads the classes of the n samples that are in the file called of.
func readLabels(ctx context.Context, path, of string, n int64) (labels []int64, err error) {
	var h npy
	err = withNPY(ctx, path, func(is npy) error {
		h = is
		switch flat := len(h.shape) == 1 || len(h.shape) == 2 && h.shape[1] == 1; {
		case h.width() == 0:
			return fmt.Errorf("values of the kind %q, expected whole numbers, the class of each sample: save numpy.int64(y)", h.kind)
		case !flat || h.shape[0] != n:
			return fmt.Errorf("the shape %s, expected (%d,): %s has so many samples", h.text(), n, of)
		case n > mostLabels:
			return fmt.Errorf("%d labels, expected at most %d", n, mostLabels)
		}
		return nil
	}, func(values io.Reader) error {
		labels = make([]int64, 0, n)
		b := make([]byte, h.width())
		for i := range n {
			if _, err := io.ReadFull(values, b); err != nil {
				return fmt.Errorf("label %d: %w", i, short(err))
			}
			l := h.integer(b)
			if l < 0 || l >= mostClasses {
				return fmt.Errorf("label %d is %d, expected 0 to %d", i, l, mostClasses-1)
			}
			labels = append(labels, l)
		}
		return nil
	})
	return labels, err
}

// arrayItems reads arrays one after another.
func arrayItems(arrays []array) originals {
	return reading(func(ctx context.Context, b *budget, give func(Item) error) error {
		for _, a := range arrays {
			if err := withNPY(ctx, a.path, a.same, func(values io.Reader) error { return a.items(ctx, b, values, give) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// same says whether a header is still that of the array.
func (a *array) same(h npy) error {
	is := array{path: a.path}
	if err := is.lies(h, a.geometry); err != nil || is.n != a.n || is.text() != a.text() || is.last != a.last {
		return errChanged
	}
	return nil
}

// items gives the pictures of an array.
func (a *array) items(ctx context.Context, b *budget, values io.Reader, give func(Item) error) error {
	size := a.planes * a.h * a.w
	need, err := a.need(b.limit)
	if err != nil {
		return err
	}
	if a.interleaved() {
		need += int64(size)
	}
	for i := range a.n {
		if err := b.take(ctx, need); err != nil {
			return err
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(values, raw); err != nil {
			return fmt.Errorf("picture %d: %w", i, short(err))
		}
		item := Item{Name: fmt.Sprintf("%s: picture %d", a.path, i), Label: -1}
		if a.labels != nil {
			item.Label = a.labels[i]
		}
		item.Values = func(context.Context, *budget) ([]byte, error) {
			defer b.give(need)
			return a.sample(a.planar(raw))
		}
		if err := give(item); err != nil {
			return err
		}
	}
	return nil
}

// interleaved says whether the channels of a pixel lie beside each other.
func (a *array) interleaved() bool { return a.last && a.planes > 1 }

// planar is a picture as planes of pixels.
func (a *array) planar(raw []byte) []byte {
	if !a.interleaved() {
		return raw
	}
	out, area := make([]byte, len(raw)), len(raw)/a.planes
	for i, v := range raw {
		out[i%a.planes*area+i/a.planes] = v
	}
	return out
}
