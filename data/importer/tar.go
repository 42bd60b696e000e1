package importer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxLabel limits a file with a class number in a tar, in bytes.
	maxLabel = 1 << 10
	// maxWindow limits what a zstd stream may refer back to, in bytes: as much
	// as zstd --long writes.
	maxWindow = 128 << 20
)

// tarSample is one sample of a WebDataset.
type tarSample struct {
	key            string // name up to the first dot
	picture, label []byte // nil if absent
	held           int64  // bytes of the budget that picture has
	bad            error  // why picture was not read
}

// class is the sample's class number, −1 without one.
func (t tarSample) class() (int64, error) {
	if t.label == nil {
		return -1, nil
	}
	text := bytes.TrimSpace(t.label)
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("class %.20q, expected a number", text)
	}
	return int64(n), nil
}

// giveTo gives the sample, unless there was none yet.
func (t tarSample) giveTo(give func(tarSample) error) error {
	if t.key == "" {
		return nil
	}
	return give(t)
}

// tarReader reads the samples of tars: pictures as far as the budget has room
// or, while they are counted, only the first of all.
type tarReader struct {
	budget   *budget
	counting *tally
}

// samples reads the samples of a tar; an error is the last thing it yields.
func (r *tarReader) samples(ctx context.Context, path string) iter.Seq2[tarSample, error] {
	return sequence(func(give func(tarSample) error) error {
		f, err := openRegular(ctx, path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		stream, done, err := decompress(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer done()
		for t, err := range r.group(ctx, stream) {
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if err := give(t); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	magicBytes  = 4 // that tell how a file is compressed
	magicBuffer = 1 << 18
)

// decompress undoes gzip or zstd, told by their magic numbers.
func decompress(f io.Reader) (io.Reader, func(), error) {
	buf := bufio.NewReaderSize(f, magicBuffer)
	head, err := buf.Peek(magicBytes)
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
		z, err := zstd.NewReader(buf, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return buf, func() {}, nil
}

// group joins the entries of a tar to samples.
func (r *tarReader) group(ctx context.Context, stream io.Reader) iter.Seq2[tarSample, error] {
	return sequence(func(give func(tarSample) error) error { return r.join(ctx, stream, give) })
}

// join gives the samples of group.
func (r *tarReader) join(ctx context.Context, stream io.Reader, give func(tarSample) error) error {
	var t tarSample // to which the next entry may belong; without a key at first
	end := &ending{r: stream}
	tr := tar.NewReader(end)
	last := "its first entry"
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("after %s: %w", last, broken(ctx, err))
		}
		last = readable(h.Name)
		if r.leaves(h) {
			continue
		}
		key, ext := splitKey(h.Name)
		if key != t.key {
			if err := t.giveTo(give); err != nil {
				return err
			}
			t = tarSample{key: key}
		}
		if err := r.entry(ctx, &t, ext, h.Size, tr); err != nil {
			return fmt.Errorf("%s: %w", last, broken(ctx, err))
		}
	}
	if !end.reached() {
		return fmt.Errorf("after %s: %w", last, short(io.ErrUnexpectedEOF))
	}
	if err := t.giveTo(give); err != nil {
		return err
	}
	if err := drain(stream); err != nil {
		return fmt.Errorf("after %s: %w", last, broken(ctx, err))
	}
	return nil
}

// ending reads a tar and remembers its last block, which is empty where a tar ends:
// archive/tar takes any end between two entries, or in what fills up the last block of
// one, for that of the tar, so half of a copy would be a data set.
type ending struct {
	r    io.Reader
	last [512]byte
	read int64
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	fresh := p[max(0, n-len(e.last)):n]
	copy(e.last[:], e.last[len(fresh):])
	copy(e.last[len(e.last)-len(fresh):], fresh)
	e.read += int64(n)
	return n, err
}

// reached says whether what was read ends with an empty block.
func (e *ending) reached() bool {
	return e.read >= int64(len(e.last)) && e.last == [len(e.last)]byte{}
}

// broken is why a tar cannot be read on, and what to do. A checksum is found to be wrong
// where its decoder is, which may be ahead of the entries.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return short(err)
	}
	return damaged(err)
}

// drain reads what follows the end of a tar: the checksum of what was compressed, which
// is of all of it, comes last. What follows that is nobody's.
func drain(stream io.Reader) error {
	_, err := io.Copy(io.Discard, stream)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch) {
		return nil
	}
	return err
}

// leaves says whether an entry is left alone, and counts it once, folders excepted.
func (r *tarReader) leaves(h *tar.Header) bool {
	file := h.Typeflag == tar.TypeReg
	is := hidden(path.Clean("/" + h.Name))
	if file && !is {
		return false
	}
	switch {
	case r.counting == nil || h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader:
	case is:
		r.counting.apart.hidden.add(h.Name)
	default:
		r.counting.apart.pipes.add(h.Name + ", a link or the like")
	}
	return true
}

// entry reads an entry into its sample, if it belongs there.
func (r *tarReader) entry(ctx context.Context, t *tarSample, ext string, size int64, body io.Reader) (err error) {
	switch {
	case ext == "cls":
		t.label, err = io.ReadAll(io.LimitReader(body, maxLabel))
		return err
	case ext != "jpg" && ext != "jpeg" && ext != "png":
		return nil
	case size > maxEntry:
		t.bad = tooLarge(nil, size)
		return nil
	}
	if r.counting != nil {
		if r.counting.first != nil {
			return nil
		}
		r.counting.first, err = readAll(body, size)
		return err
	}
	if t.picture, t.bad = nil, nil; t.held > 0 { // the last of several counts
		r.budget.give(t.held)
	}
	if t.held = size; size > r.budget.limit {
		t.held, t.bad = 0, tooLarge(nil, size)
		return nil
	}
	if err := r.budget.take(ctx, size); err != nil {
		return err
	}
	t.picture, err = readAll(body, size)
	return err
}

// readAll reads size bytes.
func readAll(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}

// splitKey cuts an entry's name at the first dot after the last slash.
func splitKey(name string) (key, ext string) {
	dir, base := path.Split(path.Clean("/" + name))
	stem, ext, _ := strings.Cut(base, ".")
	return strings.TrimPrefix(dir+stem, "/"), strings.ToLower(ext)
}
