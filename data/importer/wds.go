package importer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxEntry limits one file in a tar, in bytes.
const maxEntry = 256 << 20

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
func WebDataset(srcs []string, g Geometry) (*Set, error) {
	files, err := expand(srcs, func(name string) int {
		if isTar(name) {
			return 1
		}
		return 0
	})
	if err != nil {
		return nil, fmt.Errorf("%w, expected .tar, .tar.gz or .tar.zst", err)
	}
	s := &Set{Preprocessing: g.preprocessing("wds")}
	var first []byte
	most := int64(-1)
	for split, paths := range bySplit(files) {
		p := Split{Name: split}
		labelled := -1
		for _, path := range paths {
			for t, err := range tarSamples(path) {
				if err != nil {
					return nil, err
				}
				if has := map[bool]int{false: 0, true: 1}[t.label != nil]; labelled < 0 {
					labelled = has
				} else if labelled != has {
					return nil, fmt.Errorf("%s: some samples have a .cls and %s differs, expected all or none", path, t.key)
				}
				if first == nil {
					first = t.picture
				}
				if l, err := t.class(); err == nil { // a bad one is named when it is imported
					most = max(most, l)
				}
				p.Count++
			}
		}
		if p.Count == 0 {
			return nil, fmt.Errorf("%s: no samples, expected pictures named like 000000.jpg", paths[0])
		}
		p.Items = g.tarItems(paths)
		s.Splits = append(s.Splits, p)
	}
	if most > 1<<20 {
		return nil, fmt.Errorf("%s: a class number of %d, expected at most %d", files[0], most, 1<<20)
	}
	var classes []string
	for l := range most + 1 {
		classes = append(classes, strconv.FormatInt(l, 10))
	}
	s.Schema, err = g.schema(func() ([]byte, error) { return first, nil }, classes)
	if err != nil {
		return nil, fmt.Errorf("%s: first picture: %w", files[0], err)
	}
	return s, nil
}

// tarItems are the samples of the tars, one after another.
func (g Geometry) tarItems(paths []string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, path := range paths {
			for t, err := range tarSamples(path) {
				if err != nil {
					yield(Item{}, err)
					return
				}
				label, bad := t.class()
				item := Item{Name: path + ": " + t.key, Label: label, Pixels: func() ([]byte, error) {
					if t.picture == nil {
						return nil, errors.New("a sample without a picture, expected .jpg, .jpeg or .png")
					}
					if bad != nil {
						return nil, bad
					}
					return g.decode(t.picture)
				}}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// tarSample is one sample of a WebDataset.
type tarSample struct {
	key            string // name up to the first dot
	picture, label []byte // nil if absent
}

// class is the sample's class number, −1 without one.
func (t tarSample) class() (int64, error) {
	if t.label == nil {
		return -1, nil
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(t.label)), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("class %.20q, expected a number", t.label)
	}
	return int64(n), nil
}

// tarSamples reads the samples of a tar; an error is the last thing it yields.
func tarSamples(path string) iter.Seq2[tarSample, error] {
	return func(yield func(tarSample, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(tarSample{}, err)
			return
		}
		defer f.Close()
		r, done, err := decompress(f)
		if err != nil {
			yield(tarSample{}, fmt.Errorf("%s: %w", path, err))
			return
		}
		defer done()
		for t, err := range groupTar(r) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// decompress undoes gzip or zstd, told by their magic numbers.
func decompress(f io.Reader) (io.Reader, func(), error) {
	buf := bufio.NewReaderSize(f, 1<<18)
	head, err := buf.Peek(4)
	if err != nil {
		return nil, nil, fmt.Errorf("offset 0: %w", short(err))
	}
	switch {
	case head[0] == 0x1f && head[1] == 0x8b:
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip header at offset 0: %w", err)
		}
		return z, func() {}, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buf, zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return buf, func() {}, nil
}

// groupTar joins the entries of a tar to samples.
func groupTar(r io.Reader) iter.Seq2[tarSample, error] {
	return func(yield func(tarSample, error) bool) {
		var t tarSample
		tr := tar.NewReader(r)
		last := "its first entry"
		for {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			var body []byte
			if err == nil && h.Typeflag == tar.TypeReg {
				body, err = readEntry(tr, h)
			}
			if err != nil {
				yield(tarSample{}, fmt.Errorf("after %s: %w", last, short(err)))
				return
			}
			last = h.Name
			if h.Typeflag != tar.TypeReg {
				continue
			}
			key, ext := splitKey(h.Name)
			if key != t.key {
				if t.key != "" && !yield(t, nil) {
					return
				}
				t = tarSample{key: key}
			}
			switch {
			case slices.Contains([]string{"jpg", "jpeg", "png"}, ext):
				t.picture = body
			case ext == "cls":
				t.label = body
			}
		}
		if t.key != "" {
			yield(t, nil)
		}
	}
}

func readEntry(r io.Reader, h *tar.Header) ([]byte, error) {
	if h.Size > maxEntry {
		return nil, fmt.Errorf("%s has %d bytes, expected at most %d", h.Name, h.Size, maxEntry)
	}
	b, err := io.ReadAll(r)
	if b == nil {
		b = []byte{}
	}
	return b, err
}

// splitKey cuts an entry's name at the first dot after the last slash.
func splitKey(name string) (key, ext string) {
	dir, base := path.Split(path.Clean("/" + name))
	stem, ext, _ := strings.Cut(base, ".")
	return strings.TrimPrefix(dir+stem, "/"), strings.ToLower(ext)
}
