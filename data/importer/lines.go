package importer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// maxLineBytes bounds a line of text; of a longer one only so much is kept.
const maxLineBytes = 1 << 20

// mark is what some programs, of Windows mostly, begin a file of UTF-8 with. It is no
// part of the first word.
var mark = []byte("\ufeff")

// line is one line of a file of text, without its end.
type line struct {
	file   string
	number int // from 1
	text   string
	err    error // why it is no text
}

// name is for messages.
func (l line) name() string { return fmt.Sprintf("%s: line %d", l.file, l.number) }

// lines are those of files, one file after another. An error ends them.
func lines(ctx context.Context, files []string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for _, file := range files {
			if !linesOf(ctx, file, yield) {
				return
			}
		}
	}
}

// linesOf are the lines of one file, compressed or not; false when they are to end.
func linesOf(ctx context.Context, file string, yield func(line, error) bool) bool {
	f, err := openRegular(ctx, file)
	if err != nil {
		return yield(line{}, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	stream, end, err := expanded(f)
	if err != nil {
		return yield(line{}, fmt.Errorf("%s: %w", file, err))
	}
	defer end()
	in := bufio.NewReaderSize(stream, 1<<16)
	if err := notUTF16(in); err != nil {
		return yield(line{}, fmt.Errorf("%s: %w", file, err))
	}
	for n := 1; ; n++ {
		raw, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return yield(line{}, fmt.Errorf("%s: line %d: %w", file, n, short(err)))
		}
		if n == 1 {
			raw = bytes.TrimPrefix(raw, mark)
		}
		l := line{file: file, number: n, text: string(raw)}
		switch at := invalid(raw); {
		case len(raw) > maxLineBytes:
			l.err = fmt.Errorf("over the limit of %d bytes", maxLineBytes)
		case at >= 0:
			l.err = fmt.Errorf("byte 0x%02x at offset %d of the line is not UTF-8", raw[at], at)
		case bytes.IndexByte(raw, 0) >= 0: // UTF-8 by its rules, and in truth UTF-16 without a mark, or no text
			l.err = fmt.Errorf("byte 0x00 at offset %d of the line, as text in UTF-16 has and none in UTF-8", bytes.IndexByte(raw, 0))
		}
		if !yield(l, nil) {
			return false
		}
	}
}

// notUTF16 reports a file whose mark says that it is of UTF-16, in either order of its
// bytes, as programs of Windows write: most of its lines would pass for words with zeros in
// them.
func notUTF16(in *bufio.Reader) error {
	head, _ := in.Peek(2) // what cannot be read is said where it is
	if string(head) == "\xff\xfe" || string(head) == "\xfe\xff" {
		return errors.New("text in UTF-16, expected UTF-8: convert it, as iconv -f UTF-16 -t UTF-8 does")
	}
	return nil
}

// expanded is what a file holds, decompressed if it is of gzip or zstd.
func expanded(f io.Reader) (io.Reader, func(), error) {
	buf := bufio.NewReaderSize(f, magicBuffer)
	if _, err := buf.Peek(magicBytes); errors.Is(err, io.EOF) { // too short to be compressed
		return buf, func() {}, nil
	}
	return decompress(buf)
}

// readLine reads a line, or the first maxLineBytes + 1 bytes of it and over the
// rest. io.EOF is for nothing at all.
func readLine(in *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		part, more, err := in.ReadLine()
		if err != nil {
			if errors.Is(err, io.EOF) && raw != nil {
				err = nil
			}
			return raw, err
		}
		raw = append(raw, part[:min(len(part), maxLineBytes+1-len(raw))]...)
		if !more {
			if raw == nil {
				raw = []byte{}
			}
			return raw, nil
		}
	}
}

// invalid is the offset of the first byte that is not UTF-8, or −1.
func invalid(raw []byte) int {
	for at := 0; at < len(raw); {
		r, n := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return -1
}
