package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	seekable "github.com/SaveTheRbtz/zstd-seekable-format-go/pkg"
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"ebtrain/data/safetensors"
)

// footerBytes ends every seekable zstd file: u32 frames, u8 flags, u32 magic.
const (
	footerBytes = 9
	footerMagic = 0x8F92EAB1
)

// table is where the frames of one shard lie.
type table struct {
	frames []seekable.FrameOffsetEntry // non-empty frames, in order
	blocks int                         // frames of each tensor
	values int                         // first frame of images or tokens
	labels int                         // first frame of labels
	ends   int                         // first frame of ends, of sentences
}

// readTable reads and checks the seek table and the header of a shard of the
// given size and description. Errors do not name the file.
func (r *Reader) readTable(f io.ReaderAt, e Entry) (*table, error) {
	frames, err := readSeekTable(f, int64(e.Bytes))
	if err != nil {
		return nil, err
	}
	header, err := new(scratch).frame(f, r.dec, frames[0], nil)
	if err != nil {
		return nil, fmt.Errorf("frame 0 at offset 0: %w", err)
	}
	s, err := safetensors.New(bytes.NewReader(header), int64(e.RawBytes))
	if err != nil {
		return nil, fmt.Errorf("frame 0 at offset 0: %w", err)
	}
	if s.DataStart() != int64(len(header)) {
		return nil, fmt.Errorf("frame 0 at offset 0: %d bytes, expected the header's %d", len(header), s.DataStart())
	}
	return r.checkTable(frames, s, int64(e.Samples))
}

// checkTable matches frames to tensors: the header, then for each tensor one
// frame per block.
func (r *Reader) checkTable(frames []seekable.FrameOffsetEntry, s *safetensors.File, n int64) (*table, error) {
	k := int64(r.layout.BlockSamples)
	t := &table{frames: frames, blocks: int((n + k - 1) / k), values: -1, labels: -1, ends: -1}
	if want := 1 + t.blocks*len(s.Infos()); len(frames) != want {
		return nil, fmt.Errorf("%d frames, expected %d", len(frames), want)
	}
	for i, info := range s.Infos() {
		first := 1 + i*t.blocks
		mine := frames[first : first+t.blocks]
		if info.Name == tokensTensor && r.schema.Text != nil {
			if err := checkTokenFrames(info, mine); err != nil {
				return nil, err
			}
			t.values = first
			continue
		}
		if err := r.checkFrames(info, mine, n); err != nil {
			return nil, err
		}
		switch info.Name {
		case pixelsTensor:
			t.values = first
		case labelsTensor:
			t.labels = first
		case endsTensor:
			t.ends = first
		}
	}
	if t.values < 0 || t.labels < 0 || t.ends < 0 && r.schema.Text != nil {
		return nil, fmt.Errorf("expected the tensors %s", strings.Join(tensorsOf(r.schema), " and "))
	}
	return t, nil
}

// checkTokenFrames checks the tensor of tokens and the sizes of its frames.
func checkTokenFrames(info safetensors.Info, frames []seekable.FrameOffsetEntry) error {
	sizes := make([]uint64, len(frames))
	for b, e := range frames {
		sizes[b] = uint64(e.DecompressedSize)
	}
	return checkTokens(info, sizes)
}

// checkFrames checks a tensor that has a row for each of n samples, and the sizes of its
// frames, one a block.
func (r *Reader) checkFrames(info safetensors.Info, frames []seekable.FrameOffsetEntry, n int64) error {
	if len(info.Shape) == 0 || info.Shape[0] != n {
		return fmt.Errorf("tensor %s has shape %v, expected %d samples", info.Name, info.Shape, n)
	}
	k := int64(r.layout.BlockSamples)
	for b, got := range frames {
		want := info.Bytes() / n * min(k, n-int64(b)*k)
		if int64(got.DecompressedSize) != want {
			return fmt.Errorf("frame %d at offset %d has %d bytes, expected %d", got.ID, got.CompressedOffset, got.DecompressedSize, want)
		}
	}
	return r.checkTensor(info, n)
}

// checkTensor compares images and labels with the schema; others are ignored.
func (r *Reader) checkTensor(info safetensors.Info, n int64) error {
	s := r.schema
	var dtype safetensors.DType
	var want []int64
	switch info.Name {
	case pixelsTensor:
		dtype, want = s.DType, []int64{n, int64(s.C), int64(s.H), int64(s.W)}
	case labelsTensor:
		dtype, want = safetensors.I64, []int64{n}
	case endsTensor:
		dtype, want = safetensors.U64, []int64{n}
	default:
		return nil
	}
	if info.DType != dtype || fmt.Sprint(info.Shape) != fmt.Sprint(want) {
		return fmt.Errorf("tensor %s is %s%v, expected %s%v", info.Name, info.DType, info.Shape, dtype, want)
	}
	return nil
}

// readSeekTable reads the table at the end of a file of size bytes and checks
// that frames and table fill it.
func readSeekTable(f io.ReaderAt, size int64) ([]seekable.FrameOffsetEntry, error) {
	torn := func() error {
		return fmt.Errorf("no seek table ends at offset %d: the file is torn (a write or copy did not finish)", size)
	}
	var foot [footerBytes]byte
	if size < footerBytes+8 {
		return nil, torn()
	}
	if _, err := f.ReadAt(foot[:], size-footerBytes); err != nil {
		return nil, fmt.Errorf("seek table footer at offset %d: %w", size-footerBytes, err)
	}
	if binary.LittleEndian.Uint32(foot[5:]) != footerMagic {
		return nil, torn()
	}
	if foot[4]&0x80 == 0 {
		return nil, fmt.Errorf("the seek table at the end has no checksums: not a shard")
	}
	n := int64(binary.LittleEndian.Uint32(foot[:]))*12 + footerBytes + 8
	if n > size {
		return nil, fmt.Errorf("the seek table needs %d bytes, but the file has %d", n, size)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, size-n); err != nil {
		return nil, fmt.Errorf("seek table at offset %d: %w", size-n, err)
	}
	t, err := seekable.NewSeekTable(b)
	if err != nil {
		return nil, fmt.Errorf("seek table at offset %d: %w", size-n, err)
	}
	var frames []seekable.FrameOffsetEntry
	var end uint64
	for i := range t.NumFrames() {
		e, _ := t.EntryByID(i) // i is in range
		end = e.CompressedOffset + uint64(e.CompressedSize)
		if e.DecompressedSize > 0 { // others are skippable frames
			frames = append(frames, e)
		}
	}
	if end != uint64(size-n) || len(frames) == 0 {
		return nil, fmt.Errorf("seek table at offset %d lists %d bytes of frames, expected %d", size-n, end, size-n)
	}
	return frames, nil
}

// scratch is the memory of reading a block, besides the block.
type scratch struct {
	packed []byte // a frame as it lies in the file
	labels []byte
	tokens []int32 // of one sentence
}

// frame reads and decodes one frame into dst's storage and checks both of its
// checksums.
func (s *scratch) frame(f io.ReaderAt, dec *zstd.Decoder, e seekable.FrameOffsetEntry, dst []byte) ([]byte, error) {
	if e.DecompressedSize > maxBlockBytes || e.CompressedSize > maxBlockBytes {
		return nil, fmt.Errorf("%d bytes, %d decoded, is over the limit of %d", e.CompressedSize, e.DecompressedSize, maxBlockBytes)
	}
	s.packed = slices.Grow(s.packed[:0], int(e.CompressedSize))[:e.CompressedSize]
	if _, err := f.ReadAt(s.packed, int64(e.CompressedOffset)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	raw, err := dec.DecodeAll(s.packed, dst[:0])
	if err != nil {
		return nil, fmt.Errorf("damaged (%w)", err)
	}
	if len(raw) != int(e.DecompressedSize) {
		return nil, fmt.Errorf("damaged (%d bytes decoded, expected %d)", len(raw), e.DecompressedSize)
	}
	if got := uint32(xxhash.Sum64(raw)); got != e.Checksum {
		return nil, fmt.Errorf("damaged (checksum %08x, expected %08x)", got, e.Checksum)
	}
	return raw, nil
}
