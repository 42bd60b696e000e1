package importer

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// start is the beginning of a JPEG with these bytes behind its first marker.
func start(b ...byte) []byte { return append([]byte{0xff, 0xd8}, b...) }

// TestBaselineMarkers: the frame header is found behind markers with and without a length.
func TestBaselineMarkers(t *testing.T) {
	app := append([]byte{0xff, 0xe0, 0x01, 0x02}, make([]byte, 0x100)...)
	for _, c := range []struct {
		name string
		head []byte
		want bool
	}{
		{"baseline", start(0xff, 0xc0, 0, 0), true},
		{"extended", start(0xff, 0xc1, 0, 0), true},
		{"progressive", start(0xff, 0xc2, 0, 0), false},
		{"a scan before", start(0xff, 0xda, 0, 2, 0xff, 0xc0, 0, 0), false},
		{"an end before", start(0xff, 0xd9, 0, 2, 0xff, 0xc0, 0, 0), false},
		{"fill", start(0xff, 0xff, 0xff, 0xc0, 0, 0), true},
		{"no length", start(0xff, 0xd0, 0xff, 0xd7, 0xff, 0x01, 0xff, 0xc0, 0, 0), true},
		{"tables", start(0xff, 0xc4, 0, 4, 0, 0, 0xff, 0xc0, 0, 0), true},
		{"a long part", start(append(app, 0xff, 0xc0, 0, 0)...), true},
		{"a long part, progressive", start(append(app, 0xff, 0xc2, 0, 0)...), false},
		{"behind what is kept", start(app...), false},
		{"no marker", start(0, 0xc0, 0, 0), false},
	} {
		if got := baselineJPEG(c.head); got != c.want {
			t.Errorf("%s: baseline %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDecodedBytes: what decoding takes, by hand: planes of whole blocks of 32×32 and, of a JPEG
// that is progressive, four bytes more for each of theirs; of a PNG its pixels, twice if
// interlaced.
func TestDecodedBytes(t *testing.T) {
	baseline, progressive, interlaced := start(0xff, 0xc0, 0, 0), start(0xff, 0xc2, 0, 0), append(make([]byte, 28), 1)
	for _, c := range []struct {
		format string
		model  color.Model
		head   []byte
		want   float64
	}{
		{"jpeg", color.YCbCrModel, baseline, 64 * 64 * 3},
		{"jpeg", color.GrayModel, baseline, 64 * 64},
		{"jpeg", color.CMYKModel, baseline, 64 * 64 * (4 + 4)},
		{"jpeg", color.RGBAModel, baseline, 64 * 64 * (3 + 4)},
		{"jpeg", color.YCbCrModel, progressive, 64 * 64 * 3 * 5},
		{"jpeg", color.CMYKModel, progressive, 64 * 64 * (4*5 + 4)},
		{"png", color.GrayModel, nil, 33 * 33 * 4},
		{"png", color.NRGBAModel, nil, 33 * 33 * 4},
		{"png", color.Gray16Model, nil, 33 * 33 * 8},
		{"png", color.NRGBA64Model, nil, 33 * 33 * 8},
		{"png", color.Palette{color.Black}, nil, 33 * 33},
		{"png", color.NRGBAModel, interlaced, 33 * 33 * 4 * 2},
		{"png", color.NRGBAModel, interlaced[:28], 33 * 33 * 4},
		{"png", color.NRGBAModel, make([]byte, 29), 33 * 33 * 4},
	} {
		if got := decodedBytes(image.Config{Width: 33, Height: 33, ColorModel: c.model}, c.format, c.head); got != c.want {
			t.Errorf("%s, %v, %v: %v bytes, want %v", c.format, c.model, c.head, got, c.want)
		}
	}
}

// TestWholeBlocks: what is a whole block already is one.
func TestWholeBlocks(t *testing.T) {
	if got := decodedBytes(image.Config{Width: 32, Height: 64, ColorModel: color.GrayModel}, "jpeg", start(0xff, 0xc0, 0, 0)); got != 32*64 {
		t.Errorf("%v bytes, want 2048", got)
	}
}

// TestHeaderErrors: a disk that fails, an empty file and one that was cut are told apart.
func TestHeaderErrors(t *testing.T) {
	failure := errors.New("the disk fails")
	begun := pngOf(t, plain(3, 2, color.White))[:12]
	for _, before := range [][]byte{nil, begun} {
		if _, err := readHeader(io.MultiReader(bytes.NewReader(before), iotest.ErrReader(failure))); !errors.Is(err, failure) {
			t.Errorf("behind %d bytes: %v", len(before), err)
		}
	}
	for want, b := range map[string][]byte{"empty, expected a JPEG or PNG picture": nil, "the picture is cut short: its 12 bytes end too soon": begun, `not a JPEG or PNG picture (it begins with "GIF89a..")`: []byte("GIF89a....")} {
		if _, err := readHeader(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", b, err, want)
		}
	}
}
