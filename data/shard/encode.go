package shard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	seekable "github.com/SaveTheRbtz/zstd-seekable-format-go/pkg"
	"github.com/cespare/xxhash/v2"

	"ebtrain/data/safetensors"
)

// writeShard writes b as one shard at path and describes it, File excepted.
func (w *Writer) writeShard(ctx context.Context, path string, b *buffer) (Entry, error) {
	s := w.opts.Schema
	n := int64(b.n)
	infos := []safetensors.Info{
		{Name: pixelsTensor, DType: s.DType, Shape: []int64{n, int64(s.C), int64(s.H), int64(s.W)}},
		{Name: labelsTensor, DType: safetensors.I64, Shape: []int64{n}},
	}
	content := map[string][]byte{pixelsTensor: b.values, labelsTensor: b.labels}
	if s.Text != nil {
		infos[0] = safetensors.Info{Name: tokensTensor, DType: s.DType, Shape: []int64{int64(len(b.values) / 4)}}
		infos = append(infos, safetensors.Info{Name: endsTensor, DType: safetensors.U64, Shape: []int64{n}})
		content = map[string][]byte{tokensTensor: b.values, labelsTensor: b.labels, endsTensor: b.ends}
	}
	header, placed, err := safetensors.Plan(infos, nil)
	if err != nil {
		return Entry{}, err
	}
	frames := [][]byte{header}
	e := Entry{Samples: uint64(n), RawBytes: uint64(len(header)), SHA256: map[string]string{}}
	for _, t := range placed {
		raw := content[t.Name]
		sum := sha256.Sum256(raw)
		e.SHA256[t.Name] = hex.EncodeToString(sum[:])
		e.RawBytes += uint64(len(raw))
		at := 0
		for samples := w.index.BlockSamples; at < len(raw); samples += w.index.BlockSamples {
			end := b.cut(t.Name, raw, min(samples, b.n))
			frames = append(frames, raw[at:end])
			at = end
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return Entry{}, err
	}
	sum := xxhash.New()
	count := &counter{w: io.MultiWriter(f, sum)}
	err = w.writeFrames(ctx, count, frames)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return Entry{}, err
	}
	e.Bytes = count.n
	e.XXH64 = fmt.Sprintf("%016x", sum.Sum64())
	return e, nil
}

// writeFrames compresses frames in parallel and writes them in order, then the
// seek table.
func (w *Writer) writeFrames(ctx context.Context, out io.Writer, frames [][]byte) error {
	z, err := seekable.NewWriter(out, w.enc)
	if err != nil {
		return err
	}
	next := 0
	err = z.WriteMany(ctx, func() ([]byte, error) {
		if next == len(frames) {
			return nil, nil
		}
		next++
		return frames[next-1], nil
	}, seekable.WithConcurrency(w.opts.Workers))
	if err != nil {
		return err
	}
	return z.Close()
}

// counter counts the bytes written through it.
type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n)
	return n, err
}
