package importer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A .npy file is a magic number, two bytes of a version, the length of a header, the
// header, which is a dictionary in Python's words, and the values (numpy.lib.format). The
// Go libraries for it trust what the header says.
const (
	npyMagic  = "\x93NUMPY"
	npyHeader = 1 << 16 // the longest that is read, as NumPy's own are of 128 bytes
	npyValues = 1 << 50 // the most values
)

var (
	npyKind  = regexp.MustCompile(`'descr':\s*'([^']*)'`)
	npyOrder = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape':\s*\(([\d\s,]*)\)`)
)

// npy says what an array of NumPy's holds.
type npy struct {
	kind   string  // of its values: order of bytes, kind and width, as in "<i8"
	shape  []int64 // each 1 or more
	offset int64   // of the first value
}

// values is how many there are.
func (a npy) values() int64 {
	n := int64(1)
	for _, d := range a.shape {
		n *= d
	}
	return n
}

// text is the shape as NumPy writes it.
func (a npy) text() string {
	var words []string
	for _, d := range a.shape {
		words = append(words, strconv.FormatInt(d, 10))
	}
	if len(words) == 1 {
		return "(" + words[0] + ",)"
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// readNPY reads what comes before the values.
func readNPY(r io.Reader) (a npy, err error) {
	start := make([]byte, len(npyMagic)+2)
	n, err := io.ReadFull(r, start)
	switch {
	case n >= 4 && string(start[:4]) == "PK\x03\x04":
		return a, errors.New("a zip, as .npz files are, of arrays: unzip it, and give the .npy files in it")
	case n >= len(npyMagic) && string(start[:len(npyMagic)]) != npyMagic:
		return a, fmt.Errorf("offset 0: %q, expected %q, as NumPy's .npy files begin", start[:len(npyMagic)], npyMagic)
	case err != nil:
		return a, fmt.Errorf("offset 0: expected the header of a .npy file: %w", short(err))
	}
	size := make([]byte, 4)
	switch version := start[len(npyMagic)]; version {
	case 1:
		_, err = io.ReadFull(r, size[:2])
		a.offset = int64(len(start) + 2)
	case 2, 3:
		_, err = io.ReadFull(r, size)
		a.offset = int64(len(start) + 4)
	default:
		return a, fmt.Errorf("offset %d: version %d of the format, expected 1, 2 or 3", len(npyMagic), version)
	}
	length := binary.LittleEndian.Uint32(size)
	if err == nil && length > npyHeader {
		return a, fmt.Errorf("offset %d: a header of %d bytes, expected at most %d", len(start), length, npyHeader)
	}
	header := make([]byte, length)
	if err == nil {
		_, err = io.ReadFull(r, header)
	}
	if err != nil {
		return a, fmt.Errorf("offset %d: the header: %w", len(start), short(err))
	}
	a.offset += int64(length)
	return a, a.parse(string(header))
}

// parse takes what the header says.
func (a *npy) parse(header string) error {
	kind, order, shape := npyKind.FindStringSubmatch(header), npyOrder.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	switch {
	case kind == nil || order == nil || shape == nil:
		return fmt.Errorf("its header says %.200q, expected one kind of value, an order and a shape", strings.TrimSpace(header))
	case order[1] == "True":
		return errors.New("values in Fortran's order: save numpy.ascontiguousarray of the array")
	}
	a.kind = kind[1]
	left := int64(npyValues)
	for word := range strings.SplitSeq(shape[1], ",") {
		word = strings.TrimSpace(word)
		if word == "" { // behind the last comma
			continue
		}
		d, err := strconv.ParseInt(word, 10, 64)
		if err != nil || d < 1 || d > left {
			return fmt.Errorf("its header gives the shape (%.200s), expected dimensions of 1 and more, of at most %d values in all", shape[1], int64(npyValues))
		}
		a.shape = append(a.shape, d)
		left /= d
	}
	return nil
}

// width is how many bytes a value takes that is a whole number, 0 if it is none.
func (a npy) width() int64 {
	if len(a.kind) != 3 || !strings.ContainsRune("<>|", rune(a.kind[0])) || !strings.ContainsRune("iu", rune(a.kind[1])) {
		return 0
	}
	switch w := a.kind[2]; w {
	case '1', '2', '4', '8':
		return int64(w - '0')
	}
	return 0
}

// integer is the whole number in b, of width bytes. One above those of int64 is negative.
func (a npy) integer(b []byte) int64 {
	var v uint64
	for i := range b {
		from := i // the lowest byte first
		if a.kind[0] == '>' {
			from = len(b) - 1 - i
		}
		v |= uint64(b[from]) << (8 * i)
	}
	if a.kind[1] == 'u' {
		return int64(v)
	}
	shift := 64 - 8*len(b) // of the sign
	return int64(v<<shift) >> shift
}

// withNPY opens an array, which check accepts, makes sure that the file holds all of it, and
// gives its values to f. Errors name the file. f may be nil.
func withNPY(ctx context.Context, path string, check func(npy) error, f func(values io.Reader) error) error {
	file, err := openRegular(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	in := bufio.NewReaderSize(file, 1<<18)
	a, err := readNPY(in)
	if err == nil {
		err = check(a)
	}
	if want := a.offset + a.values()*a.size(); err == nil && file.size != want {
		err = fmt.Errorf("%d bytes, expected %d for an array of the shape %s: the file was cut short, or is not whole yet, so copy or save it again", file.size, want, a.text())
	}
	if err == nil && f != nil {
		err = f(in)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
